//! What is shown of a configuration is one itself.

use super::*;

#[test]
fn what_is_shown_reads_back_as_the_same_configuration() {
    let (desk, config) = full();
    let yaml = config.to_yaml();
    assert!(yaml.contains("secret: env:SIGNING"), "references are shown: {yaml}");
    assert!(yaml.contains("x-team: \"***\""), "what may be a secret is not: {yaml}");
    let yaml = yaml.replace("x-team: \"***\"", "x-team: a").replace("LEVEL: \"***\"", "LEVEL: info");
    reads_back(&desk, &config, &yaml);
    // What is JSON is YAML as well.
    let json = config.to_json()["settings"].to_string();
    let json = json
        .replace("\"x-team\":\"***\"", "\"x-team\":\"a\"")
        .replace("\"LEVEL\":\"***\"", "\"LEVEL\":\"info\"");
    reads_back(&desk, &config, &json);
}

fn reads_back(desk: &Desk, config: &Config, yaml: &str) {
    desk.put("pointsman.yml", yaml);
    let env = [("SIGNING", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")].into_iter().collect();
    let again = Sources { env, ..desk.sources() }.load().unwrap_or_else(|faults| panic!("{faults}\n{yaml}"));
    assert_eq!(
        format!("{:?}", again.setup().unwrap().routes),
        format!("{:?}", config.setup().unwrap().routes)
    );
    let schedules = |config: &Config| config.setup().unwrap().schedules;
    assert_eq!(schedules(&again), schedules(config));
    assert_eq!(again.fixed_since(config), Vec::<&str>::new());
    let defs = |config: &Config| config.handlers.iter().map(|h| h.def.clone()).collect::<Vec<_>>();
    assert_eq!(defs(&again), defs(config));
}

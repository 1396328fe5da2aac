//! Displayed configurations parse to the same configuration.

use super::*;

#[test]
fn displayed_configuration_parses_to_the_same_configuration() {
    let (config_folder, config) = load_sample_config();
    let yaml = config.to_yaml();
    assert!(yaml.contains("secret: env:SIGNING"), "references are shown: {yaml}");
    assert!(yaml.contains("x-team: \"***\""), "a value that may be a secret is masked: {yaml}");
    let yaml = yaml.replace("x-team: \"***\"", "x-team: a").replace("LEVEL: \"***\"", "LEVEL: info");
    assert_parses_to_same_config(&config_folder, &config, &yaml);
    // JSON is valid YAML.
    let json = config.to_json_with_locations()["settings"].to_string();
    let json = json
        .replace("\"x-team\":\"***\"", "\"x-team\":\"a\"")
        .replace("\"LEVEL\":\"***\"", "\"LEVEL\":\"info\"");
    assert_parses_to_same_config(&config_folder, &config, &json);
}

fn assert_parses_to_same_config(config_folder: &ConfigFolder, config: &Config, yaml: &str) {
    config_folder.write_file("pointsman.yml", yaml);
    let env = [("SIGNING", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")].into_iter().collect();
    let again = ConfigInputs { env, ..config_folder.inputs() }
        .load_config()
        .unwrap_or_else(|faults| panic!("{faults}\n{yaml}"));
    assert_eq!(
        format!("{:?}", again.build_setup().unwrap().routes),
        format!("{:?}", config.build_setup().unwrap().routes)
    );
    let schedules = |config: &Config| config.build_setup().unwrap().schedules;
    assert_eq!(schedules(&again), schedules(config));
    assert_eq!(again.changed_settings_needing_restart(config), Vec::<&str>::new());
    let defs = |config: &Config| config.handlers.iter().map(|h| h.def.clone()).collect::<Vec<_>>();
    assert_eq!(defs(&again), defs(config));
}

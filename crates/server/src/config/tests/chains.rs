//! Whole configurations with chains: the engine's setup, the check report, faults, warnings and digests.

use std::collections::BTreeMap;

use pointsman_core::chain::Chain;
use pointsman_engine::Setup;

use super::*;

const CHAINS_YAML: &str = r#"
handlers:
  render: {run: {command: [sh]}}
  deploy: {run: pull, observe: all}
  index: {run: pull, observe: none}
event_handlers:
  record: [index]
  record.published: [{handler: index, sync: true}, /publish/article]
  page: [{chain: /publish/page}]
sources:
  shop: {schedule: "@hourly", collections: [orders]}
schedules:
  beat: {cron: every 1h, emit: {type: page.due, value: {a: 1, b: 2}}}
  nightly: {cron: "0 3 * * *", order: {path: /publish/article, id: nightly, value: {n: 1}}}
chains:
  /publish/article:
    nodes:
      - {id: render, handler: render, next: deploy, on_error: failed}
      - {id: deploy, handler: deploy, next: done, on_error: failed, setback: {delay: 30s, max: 5}}
      - {id: done, end: true}
      - {id: failed, end: true}
  /publish/page:
    nodes: [{id: render, handler: render, next: done}, {id: done, end: true}]
"#;

fn load_valid_config(text: &str) -> (ConfigFolder, Config) {
    let config_folder = ConfigFolder::new();
    config_folder.write_file("pointsman.yml", text);
    let config = config_folder.inputs().load_config().unwrap_or_else(|faults| panic!("{faults}"));
    (config_folder, config)
}

fn warnings_of(text: &str) -> Vec<String> {
    let (config_folder, config) = load_valid_config(text);
    config.warnings.iter().map(|warning| config_folder.strip_folder_path(warning)).collect()
}

#[test]
fn chains_are_part_of_the_engine_setup() {
    let (_folder, config) = load_valid_config(CHAINS_YAML);
    let Setup { chains, chain_routes, schedules, .. } = config.build_setup().unwrap();
    let paths: Vec<&str> = chains.iter().map(|chain| chain.path.as_str()).collect();
    assert_eq!(paths, ["/publish/article", "/publish/page"]);
    assert_eq!(chains[0].validation_errors(), []);
    let routed: Vec<(&str, &str)> =
        chain_routes.iter().map(|(kind, list)| (kind.as_str(), list[0].as_str())).collect();
    assert_eq!(routed, [("page", "/publish/page"), ("record.published", "/publish/article")]);
    assert_eq!(schedules[1].name.as_str(), "nightly");
}

#[test]
fn check_report_describes_chains() {
    let (config_folder, config) = load_valid_config(CHAINS_YAML);
    let summary_text =
        config_folder.strip_folder_path(check_config(&config_folder.inputs(), Timestamp::from_millis(0)));
    for want in [
        "The configuration is good: 3 handlers, 3 routed event types, 1 source, 3 schedules, 2 chains, 0 tokens.\n",
        "\nevent page: /publish/page\n",
        "\nevent record.published: index (sync), /publish/article\n",
        "\nschedule nightly: at 03:00 every day, adds the order /publish/article,nightly; next at ",
        "\nchain /publish/article: steps render, deploy; ends done, failed\n",
        "\nchain /publish/page: steps render; ends done",
    ] {
        assert!(summary_text.contains(want), "{want:?} is missing:\n{summary_text}");
    }
    let warnings: Vec<String> =
        config.warnings.iter().map(|warning| config_folder.strip_folder_path(warning)).collect();
    assert_eq!(
        warnings,
        [
            "pointsman.yml:8:3: \"index\" is synchronous and pulled: the handlers after it wait until a worker has tried it"
        ]
    );
}

#[test]
fn displayed_chains_parse_to_the_same_chains() {
    let (config_folder, config) = load_valid_config(CHAINS_YAML);
    let yaml = config.to_yaml();
    assert!(yaml.contains("  /publish/article:\n    nodes:\n      - id: render  # "), "{yaml}");
    assert!(yaml.contains("        end: true  # "), "`end` of a chain node is not masked: {yaml}");
    config_folder.write_file("pointsman.yml", &yaml);
    let again = config_folder.inputs().load_config().unwrap_or_else(|faults| panic!("{faults}\n{yaml}"));
    let chain_setup = |config: &Config| {
        let Setup { chains, chain_routes, file_digests: files, .. } = config.build_setup().unwrap();
        (chains, chain_routes, files)
    };
    assert_eq!(chain_setup(&again), chain_setup(&config), "{yaml}");
}

#[test]
fn all_faults_of_chains_are_reported_with_their_locations() {
    let text = r#"
handlers:
  render: {run: {command: [sh]}}
event_handlers:
  record: [render, /publish/artcle]
sources:
  shop: {collections: [orders]}
schedules:
  nightly: {cron: "@daily", order: {path: /publish/article, node: rendre}}
chains:
  /publish/article:
    nodes:
      - {id: render, handler: rendr, next: deplyo}
      - id: deploy
        handler: shop
        next: done
      - {id: done, end: true, next: render}
      - {id: done, end: true}
  /publish/loop:
    nodes:
      - {id: a, handler: render, next: b}
      - {id: b, handler: render, next: a}
  /publish/step: {nodes: [{id: a, handler: render}], setback: {max: 1}}
"#;
    let want = r#"
pointsman.yml:5:20: there is no chain /publish/artcle; did you mean `/publish/article`?
    5 |   record: [render, /publish/artcle]
      |                    ^
pointsman.yml:9:67: the chain /publish/article has no node rendre; did you mean `render`?
    9 |   nightly: {cron: "@daily", order: {path: /publish/article, node: rendre}}
      |                                                                   ^
pointsman.yml:13:31: there is no handler "rendr"; did you mean `render`?
   13 |       - {id: render, handler: rendr, next: deplyo}
      |                               ^
pointsman.yml:13:44: `next` names the node deplyo, which does not exist; did you mean `deploy`?
   13 |       - {id: render, handler: rendr, next: deplyo}
      |                                            ^
pointsman.yml:15:18: "shop" is a source, and a source takes no steps
   15 |         handler: shop
      |                  ^
pointsman.yml:17:31: a node with `end: true` has no `next`: orders end there
   17 |       - {id: done, end: true, next: render}
      |                               ^
pointsman.yml:18:9: the id done is already used by node 3
   18 |       - {id: done, end: true}
      |         ^
pointsman.yml:21:9: no path leads from a to an end node
   21 |       - {id: a, handler: render, next: b}
      |         ^
pointsman.yml:22:9: no path leads from b to an end node
   22 |       - {id: b, handler: render, next: a}
      |         ^
pointsman.yml:23:27: a step needs `next`: the node that its order goes to
   23 |   /publish/step: {nodes: [{id: a, handler: render}], setback: {max: 1}}
      |                           ^
pointsman.yml:23:54: unknown setting "setback" of a chain
   23 |   /publish/step: {nodes: [{id: a, handler: render}], setback: {max: 1}}
      |                                                      ^
11 faults"#;
    assert_eq!(format_faults_of(text), want.trim_start());
}

#[test]
fn unrouted_events_and_unreachable_chain_nodes_are_warned_about() {
    let text = r#"
handlers: {a: {run: pull}, b: {run: pull}}
event_handlers: {x: [/c], y: []}
schedules:
  one: {cron: "@daily", emit: {type: x.y}}
  two: {cron: "@daily", order: {path: /c, node: side}, overlap: skip}
chains:
  /c:
    nodes:
      - {id: first, handler: a, next: done}
      - {id: side, handler: a, next: beside}
      - {id: beside, handler: a, next: done}
      - {id: lost, handler: a, next: found}
      - {id: found, handler: a, next: lost, on_error: done}
      - {id: done, end: true}
"#;
    assert_eq!(
        warnings_of(text),
        [
            "pointsman.yml:2:28: nothing routes to the handler \"b\"",
            "pointsman.yml:3:27: events of type \"y\" are routed to no handler",
            "pointsman.yml:6:3: the schedule \"two\": `overlap` applies to tasks of events; an order with an `id` is not \
             added while it runs",
            "pointsman.yml:13:9: no path leads to the node lost of the chain /c",
            "pointsman.yml:14:9: no path leads to the node found of the chain /c",
        ]
    );
}

#[test]
fn files_can_add_chains_but_not_define_a_chain_twice() {
    let config_folder = ConfigFolder::new();
    let nodes = "{nodes: [{id: a, end: true}]}";
    let one = config_folder.write_file("one.yml", format!("chains: {{/a/x: {nodes}}}\n"));
    let two = config_folder.write_file("two.yml", format!("chains: {{/a/y: {nodes}, /b: {nodes}}}\n"));
    let inputs = ConfigInputs { files: vec![one, two.clone()], ..ConfigInputs::default() };
    assert_eq!(inputs.load_config().unwrap().chains.len(), 3);
    config_folder.write_file("two.yml", format!("chains: {{/a/x: {nodes}}}\n"));
    let faults = config_folder.strip_folder_path(inputs.load_config().unwrap_err());
    assert!(faults.starts_with("two.yml:1:10: `chains./a/x` is already set at one.yml:1:10\n"), "{faults}");
}

#[test]
fn variables_override_chain_settings() {
    let config_folder = ConfigFolder::new();
    config_folder.write_file("pointsman.yml", CHAINS_YAML);
    let variables = [
        ("POINTSMAN_CHAINS__PUBLISH_PAGE__NODES", "[{id: done, end: true}]"),
        ("POINTSMAN_SCHEDULES__NIGHTLY__ORDER__NODE", "deploy"),
        ("POINTSMAN_HANDLERS__INDEX__OBSERVE", "all"),
        ("POINTSMAN_ORDER", "/publish/article,1"),
        ("POINTSMAN_NODE", "render"),
    ];
    let env: Environment = variables.into_iter().collect();
    let config = ConfigInputs { env, ..config_folder.inputs() }
        .load_config()
        .unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(config.chains[1].chain.nodes.len(), 1);
    assert_eq!(config.handlers[2].def.attempt_event_policy, pointsman_core::handler::AttemptEventPolicy::All);
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
}

fn digests_of(text: &str) -> BTreeMap<String, String> {
    load_valid_config(text).1.build_setup().unwrap().file_digests
}

/// The keys whose digests differ.
fn changed_digest_keys(from: &str, to: &str) -> Vec<String> {
    // Commands run in the folder of their file, so that both are read from the same one.
    let config_folder = ConfigFolder::new();
    let digests = |text: &str| {
        config_folder.write_file("pointsman.yml", text);
        config_folder
            .inputs()
            .load_config()
            .unwrap_or_else(|faults| panic!("{faults}"))
            .build_setup()
            .unwrap()
            .file_digests
    };
    let (before, after) = (digests(from), digests(to));
    let keys = before.keys().chain(after.keys()).filter(|key| before.get(*key) != after.get(*key));
    let mut keys: Vec<String> = keys.cloned().collect();
    keys.dedup();
    keys
}

#[test]
fn handlers_schedules_and_chains_have_digests_by_journal_key() {
    let keys: Vec<String> = digests_of(CHAINS_YAML).into_keys().collect();
    assert_eq!(
        keys,
        [
            "Job:/deploy",
            "Job:/index",
            "Job:/render",
            "Job:/shop",
            "JobChain:/publish/article",
            "JobChain:/publish/page",
            "Schedule:/beat",
            "Schedule:/nightly",
        ]
    );
}

#[test]
fn a_digest_does_not_change_with_key_order_or_notation() {
    assert_eq!(changed_digest_keys(CHAINS_YAML, CHAINS_YAML), [""; 0]);
    let rewritten = CHAINS_YAML
        .replace("{id: render, handler: render, next: done}", "{next: done, handler: render, id: render}")
        .replace("setback: {delay: 30s, max: 5}", "setback: {max: 5, delay: 30000ms, backoff: fixed}")
        .replace("{a: 1, b: 2}", "{b: 2, a: 1}")
        .replace("{run: pull, observe: all}", "{observe: all, run: pull, crashes: 3}");
    assert_ne!(rewritten, CHAINS_YAML);
    assert_eq!(changed_digest_keys(CHAINS_YAML, &rewritten), [""; 0]);
}

#[test]
fn a_changed_setting_changes_only_its_own_digest() {
    for (from, to, key) in [
        ("observe: none", "observe: failures", "Job:/index"),
        ("command: [sh]", "command: [sh, -e]", "Job:/render"),
        ("\"@hourly\"", "\"@daily\"", "Job:/shop"),
        ("[orders]", "[orders, customers]", "Job:/shop"),
        ("every 1h", "every 2h", "Schedule:/beat"),
        ("{n: 1}", "{n: 2}", "Schedule:/nightly"),
        ("max: 5", "max: 6", "JobChain:/publish/article"),
    ] {
        assert_eq!(changed_digest_keys(CHAINS_YAML, &CHAINS_YAML.replace(from, to)), [key], "{from} → {to}");
    }
    let renamed = CHAINS_YAML.replace("  nightly:", "  weekly:");
    assert_eq!(changed_digest_keys(CHAINS_YAML, &renamed), ["Schedule:/nightly", "Schedule:/weekly"]);
}

#[test]
fn a_replaced_secret_changes_the_digest() {
    let config_folder = ConfigFolder::new();
    let text =
        "handlers: {a: {run: {http: 'https://x.example/', secret: env:KEY, headers: {x-team: env:TEAM}}}}";
    config_folder.write_file("pointsman.yml", text);
    let digest = |key: &str, team: &str| {
        let env = [("KEY", key), ("TEAM", team)].into_iter().collect();
        let config = ConfigInputs { env, ..config_folder.inputs() }
            .load_config()
            .unwrap_or_else(|faults| panic!("{faults}"));
        config.build_setup().unwrap().file_digests.remove("Job:/a").unwrap()
    };
    let keys = [
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "whsec_HwECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    ];
    let first = digest(keys[0], "a");
    assert_eq!((first.len(), &digest(keys[0], "a")), (64, &first));
    assert_ne!(digest(keys[1], "a"), first);
    assert_ne!(digest(keys[0], "b"), first);
}

#[test]
fn several_chains_of_a_thousand_nodes_are_read() {
    let chain = |c: usize| {
        let nodes = (0..999).map(|n| format!("{{id: n{n}, handler: h, next: n{}}}", n + 1));
        let nodes: Vec<String> = nodes.chain(["{id: n999, end: true}".into()]).collect();
        format!(" /c{c}: {{nodes: [{}]}}\n", nodes.join(", "))
    };
    let many: String = (0..3).map(chain).collect();
    let (_folder, config) = load_valid_config(&format!("handlers: {{h: {{run: pull}}}}\nchains:\n{many}"));
    let nodes = |chain: &Chain| chain.nodes.len();
    assert_eq!(
        config.chains.iter().map(|chain_config| nodes(&chain_config.chain)).collect::<Vec<_>>(),
        [1000; 3]
    );
}

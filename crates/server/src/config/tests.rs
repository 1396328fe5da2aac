//! Whole configurations: from files to a `Config` or its faults.

mod chains;
mod check;
mod show;
mod sources_and_limits;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::task::retry::{Backoff, RetryPolicy};
use pointsman_core::{Timestamp, chain::ChainNodeRole};
use pointsman_engine::{HandlerSpec, ScheduleSpec};
use proptest::prelude::*;

use super::{
    Config, ConfigFaults, ConfigFlag, ConfigInputs, Environment, HandlerRunConfig, ScheduleConfig, StoreUrl,
    check_config,
};

/// A folder with configuration files, and inputs that read them.
struct ConfigFolder {
    dir: tempfile::TempDir,
}

impl ConfigFolder {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn write_file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn inputs(&self) -> ConfigInputs {
        ConfigInputs { working_dir: self.dir.path().to_owned(), ..ConfigInputs::default() }
    }

    /// A text with the folder's own path taken out.
    fn strip_folder_path(&self, text: impl ToString) -> String {
        text.to_string().replace(&format!("{}/", self.dir.path().display()), "")
    }
}

fn load_config_from_yaml(text: &str) -> Result<Config, (ConfigFolder, ConfigFaults)> {
    let config_folder = ConfigFolder::new();
    config_folder.write_file("pointsman.yml", text);
    config_folder.inputs().load_config().map_err(|faults| (config_folder, faults))
}

fn format_faults_of(text: &str) -> String {
    let (config_folder, faults) = load_config_from_yaml(text).unwrap_err();
    config_folder.strip_folder_path(faults)
}

#[test]
fn without_any_configuration_the_defaults_apply() {
    let config = ConfigFolder::new().inputs().load_config().unwrap();
    assert_eq!(config.store_url, StoreUrl::Sqlite { path: "pointsman.db".into() });
    assert_eq!(config.listen_address, "127.0.0.1:7646".parse().unwrap());
    assert_eq!(config.max_running_tasks, 16);
    assert_eq!(
        (config.journal_retention, config.history_retention),
        (Retention::default(), Retention::default())
    );
    assert_eq!(config.engine_services, pointsman_engine::EnabledServices::default());
    assert!(config.serves_http && config.network_access.allows_loopback);
    assert!(config.handlers.is_empty() && config.warnings.is_empty());
}

/// The examples in the comments of the defaults, as a configuration.
fn extract_examples_from_default_yml() -> String {
    let mut sections = String::new();
    let mut example = String::new();
    for line in super::build::DEFAULT_YAML.lines() {
        if let Some(line) = line.strip_prefix("#   ") {
            example.push_str(&format!("  {line}\n"));
        } else if let Some(section) = line.strip_suffix(": {}") {
            sections.push_str(&format!("{section}:\n{}", std::mem::take(&mut example)));
        }
    }
    sections
}

#[test]
fn values_in_the_comments_of_default_yml_are_the_real_defaults() {
    let config_folder = ConfigFolder::new();
    config_folder.write_file("pointsman.yml", extract_examples_from_default_yml());
    let signing = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let env = [("INDEX_SECRET", signing), ("KEY", "x")].into_iter().collect();
    let config = ConfigInputs { env, ..config_folder.inputs() }
        .load_config()
        .unwrap_or_else(|faults| panic!("{faults}"));
    let index = &config.handlers[0];
    assert_eq!(
        index.def,
        pointsman_core::HandlerDef::new(index.def.name.clone()),
        "the values are the defaults"
    );
    config_folder.write_file(
        "pointsman.yml",
        "handlers: {a: {run: {http: 'https://x.example'}}, b: {run: {command: [sh]}}, c: {run: pull}}\n\
         sources: {shop: {run: {command: [python3]}, schedule: '@hourly', collections: [orders]}}\n\
         schedules: {beat: {cron: every 90s, emit: {type: x}}}\n",
    );
    let defaults = config_folder.inputs().load_config().unwrap_or_else(|faults| panic!("{faults}"));
    let timeouts = |config: &Config| config.handlers.iter().map(|h| h.run.timeout()).collect::<Vec<_>>();
    assert_eq!(timeouts(&config), timeouts(&defaults), "the timeouts are the defaults");
    let policies = |config: &Config| {
        let policies = |schedule_config: &ScheduleConfig| {
            let ScheduleSpec { catch_up, catch_up_window: catch_up_within, overlap, jitter, .. } =
                schedule_config.schedule;
            (catch_up, catch_up_within, overlap, jitter)
        };
        config
            .schedules
            .iter()
            .filter(|schedule_config| schedule_config.schedule.name.as_str() != "nightly")
            .map(policies)
            .take(2)
            .collect::<Vec<_>>()
    };
    assert_eq!(policies(&config), policies(&defaults), "the schedule policies are the defaults");
    let retry_settings =
        |config: &Config| (config.sources[0].def.retry.clone(), config.sources[0].def.max_crashes);
    assert_eq!(retry_settings(&config), retry_settings(&defaults));
    assert_eq!((config.routes.iter().count(), config.tenant_weights.len()), (1, 1));
    let names: Vec<&str> =
        config.schedules.iter().map(|schedule_config| schedule_config.schedule.name.as_str()).collect();
    assert_eq!(names, ["beat", "nightly", "shop/orders", "shop/customers"]);
    let ChainNodeRole::Step(step) = &config.chains[0].chain.nodes[0].role else {
        panic!("{:?}", config.chains)
    };
    let defaults = RetryPolicy { backoff: Backoff::Fixed, ..RetryPolicy::default() };
    assert_eq!(step.retry, Some(defaults), "the setback is the default");
    assert_eq!(config.chain_routes.iter().count(), 1);
    assert_eq!(config.sources[0].def.attempt_event_policy, pointsman_core::handler::AttemptEventPolicy::All);
}

const SAMPLE_CONFIG: &str = r#"
store: "sqlite::memory:"
server: {listen: 127.0.0.1:0, drain: 5s}
handlers:
  index:
    run: {http: "http://127.0.0.1:9000/index?key=1", timeout: 10s, secret: env:SIGNING, headers: {x-team: a}}
    retry: {max: 5, backoff: exponential, delay: 1s, max_delay: 5m}
  notify: {run: {command: ["./notify.sh", "-q"], env: {LEVEL: info}, dir: sub}}
event_handlers:
  record: [notify]
  record.published:
    - {handler: index, sync: true}
    - notify
schedules:
  beat: {cron: every 90s, emit: {type: record.due, key: "record:1"}}
"#;

fn load_sample_config() -> (ConfigFolder, Config) {
    let config_folder = ConfigFolder::new();
    config_folder.write_file("pointsman.yml", SAMPLE_CONFIG);
    std::fs::create_dir(config_folder.dir.path().join("sub")).unwrap();
    let env = [("SIGNING", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")].into_iter().collect();
    let config = ConfigInputs { env, ..config_folder.inputs() }.load_config().unwrap();
    (config_folder, config)
}

#[test]
fn a_sample_configuration_is_read() {
    let (config_folder, config) = load_sample_config();
    let [index, notify] = &config.handlers[..] else { panic!("{:?}", config.handlers) };
    assert_eq!(index.def.retry, RetryPolicy { max_retries: 5, ..RetryPolicy::default() });
    assert_eq!(index.run.timeout(), Duration::from_secs(10));
    let HandlerRunConfig::Http(http) = &index.run else { panic!("{index:?}") };
    assert_eq!((http.signing_secrets.len(), http.headers.len()), (1, 1));
    let HandlerRunConfig::Command(command) = &notify.run else { panic!("{notify:?}") };
    let folder = config_folder.dir.path();
    assert_eq!(Path::new(&command.spec.argv[0]), folder.join("notify.sh"));
    assert_eq!(command.spec.working_dir.as_deref(), Some(folder.join("sub").as_path()));
    assert_eq!(command.spec.env["LEVEL"], "info");
    let setup = config.build_setup().unwrap();
    assert_eq!((setup.handlers.len(), setup.schedules.len()), (2, 1));
    let kind = |spec: &HandlerSpec| spec.runner.as_ref().map(|runner| runner.handler_kind());
    assert_eq!(setup.handlers.iter().map(kind).collect::<Vec<_>>(), [Some("http"), Some("command")]);
}

#[test]
fn all_faults_are_reported_at_once_with_their_locations() {
    let text = r#"
stor: sqlite:x.db
workers: many
journal: {retain_events: 5}
handlers:
  index: {run: {http: "ftp://x"}, retrry: {max: 1}}
  notify:
    run: {command: ["./notify.sh"], timeout: soon}
    observe: some
  audit: {run: push}
event_handlers:
  record: [indx]
schedules:
  notify: {cron: "0 75 * * *", emit: {type: x}}
chains:
  article: {nodes: [{id: a, end: true}]}
"#;
    let want = r#"
pointsman.yml:2:1: unknown setting "stor" of the configuration; did you mean `store`?
    2 | stor: sqlite:x.db
      | ^
pointsman.yml:3:10: "many" is not a whole number
    3 | workers: many
      |          ^
pointsman.yml:4:26: 5 is too small; the least is 10000
    4 | journal: {retain_events: 5}
      |                          ^
pointsman.yml:6:23: a target is an http:// or https:// URL with a host
    6 |   index: {run: {http: "ftp://x"}, retrry: {max: 1}}
      |                       ^
pointsman.yml:6:35: unknown setting "retrry" of a handler; did you mean `retry`?
    6 |   index: {run: {http: "ftp://x"}, retrry: {max: 1}}
      |                                   ^
pointsman.yml:8:46: "soon" is not a duration; write one like `250ms`, `60s`, `1h30m`, `30d` or `PT60S`
    8 |     run: {command: ["./notify.sh"], timeout: soon}
      |                                              ^
pointsman.yml:9:14: "some" is not one of all, failures, none
    9 |     observe: some
      |              ^
pointsman.yml:10:16: this is not a way to run a handler; write `{http: URL}`, `{command: [PROGRAM, …]}` or `pull`
   10 |   audit: {run: push}
      |                ^
pointsman.yml:12:12: there is no handler "indx"; did you mean `index`?
   12 |   record: [indx]
      |            ^
pointsman.yml:14:3: the name "notify" is already used at pointsman.yml:7:3; handlers, sources and schedules share one namespace
   14 |   notify: {cron: "0 75 * * *", emit: {type: x}}
      |   ^
pointsman.yml:14:21: hour field: hours are 0 to 23, got `75`
   14 |   notify: {cron: "0 75 * * *", emit: {type: x}}
      |                     ^
pointsman.yml:16:3: "article" is not the path of a chain: it must begin with a slash; write one like `/folder/name`
   16 |   article: {nodes: [{id: a, end: true}]}
      |   ^
12 faults"#;
    assert_eq!(format_faults_of(text), want.trim_start());
}

#[test]
fn unsupported_yaml_and_deep_or_large_texts_are_faults() {
    for (text, want) in [
        ("workers: 1\nworkers: 2\n", "pointsman.yml:2:1: \"workers\" is already set in line 1"),
        ("a: &x [1]\nb: *x\n", "pointsman.yml:1:4: anchors (`&name`) are not supported"),
        ("workers: !!int 3\n", "pointsman.yml:1:10: tags (`!name`) are not supported"),
        ("workers: 1\n---\nworkers: 2\n", "pointsman.yml:2:1: a second document begins here"),
        ("? [a]\n: b\n", "pointsman.yml:1:3: a key must be text"),
        ("[1, 2]\n", "pointsman.yml:1:1: a configuration must be a map, not a list"),
        ("workers: [1\n", "this is not YAML"),
        (
            "store: sqlite::memory:\n",
            "; a value that ends in a colon, or has a space after one, needs quotes",
        ),
    ] {
        assert!(format_faults_of(text).contains(want), "{text:?}: {}", format_faults_of(text));
    }
    let deep = |depth: usize| format!("network: {}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(
        format_faults_of(&deep(100)).contains("nested deeper than 64"),
        "{}",
        format_faults_of(&deep(100))
    );
    assert!(
        format_faults_of(&deep(10_000)).starts_with("pointsman.yml:1:"),
        "{}",
        format_faults_of(&deep(10_000))
    );
    let stairs: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert!(format_faults_of(&stairs).contains("nested deeper than 64"), "{}", format_faults_of(&stairs));
    let large = format!("# {}\n", "x".repeat(1 << 20));
    assert_eq!(format_faults_of(&large), "pointsman.yml: is larger than 1048576 bytes\n1 fault");
}

#[test]
fn reading_the_largest_allowed_texts_terminates() {
    let full = |scrap: &str| scrap.repeat((1 << 20) / scrap.len());
    let scraps =
        ["a: ", "- ", "? ", "[]", "{a: 1, ", "'", "\"", "x\n", "&a ", "!", "|\n", "a:\n", "- - ", "[a, "];
    for text in scraps.iter().map(|scrap| full(scrap)) {
        let last = format_faults_of(&text).lines().last().map(str::to_owned);
        assert!(last.is_some_and(|last| last.contains("fault")), "{:.10}", text);
    }
    let many: String = (0..10_000).map(|n| format!(" h{n}: {{run: {{command: [sh]}}}}\n")).collect();
    let config = load_config_from_yaml(&format!("handlers:\n{many}")).map_err(|(_, faults)| faults).unwrap();
    assert_eq!(config.handlers.len(), 10_000);
    let keys: String = (0..60_000).map(|n| format!("k{n}:\n")).collect();
    assert!(format_faults_of(&keys).ends_with("1 fault"), "too many keys are one fault");
}

#[test]
fn invalid_utf8_is_reported_with_its_location() {
    let config_folder = ConfigFolder::new();
    config_folder.write_file("pointsman.yml", b"workers: 1\nstore: \xff\n");
    let faults = config_folder.strip_folder_path(config_folder.inputs().load_config().unwrap_err());
    assert!(faults.starts_with("pointsman.yml:2:8: the text is not UTF-8 from here on\n"), "{faults}");
}

#[test]
fn no_fault_repeats_a_secret() {
    for text in [
        "auth: {tokens: [{name: a, role: boss, sha256: hunter2}]}",
        "auth:\n  tokens:\n    - name: a\n      role: viewer\n      env: hunter2!\n",
        "handlers: {a: {run: {http: 'https://x.example/', secret: hunter2}}}",
        "handlers: {a: {run: {http: 'https://x.example/', secert: hunter2}}}",
        "handlers: {a: {run: {http: 'https://me:hunter2@x.example/'}}}",
        "handlers: {a: {run: {http: 'https://x.example/', headers: {authorization: hunter2}}}}",
        "handlers:\n  a:\n    run:\n      secrets:\n        - |\n          hunter2\n",
        "store: postgres://me:hunter2@host/db?sslmode=perhaps",
        "store: postgres://me@host/db?password=hunter2&port=x",
        "store: redis://:hunter2@host:x",
        "store: rediss+cluster://a?sentinel_password=hunter2",
        "server: {listen: 'http://me:hunter2@x.example/'}",
        "network: {allow: ['http://me:hunter2@x.example/']}",
        "auth: {tokens: [hunter2]}",
        "auth:\n  tokens: hunter2\n",
        "auth: hunter2",
        "handlers: {a: {run: 'https://me:hunter2@x.example/'}}",
        "auth:\n  token: \"hunter2\n",
        "handlers:\n  a:\n    secret: [hunter2\n",
    ] {
        let (_, faults) = load_config_from_yaml(text).unwrap_err();
        assert!(!faults.to_string().contains("hunter2"), "{faults}");
        assert!(!format!("{faults:?}").contains("hunter2"), "{faults:?}");
    }
    let good = load_config_from_yaml("handlers: {a: {run: {command: [sh], env: {KEY: hunter2}}}}")
        .map_err(|(_, f)| f)
        .unwrap();
    assert!(!format!("{good:?}").contains("hunter2"), "{good:?}");
    assert!(!good.to_yaml().contains("hunter2"), "{}", good.to_yaml());
    assert_eq!(good.to_json_with_locations()["settings"]["handlers"]["a"]["run"]["env"]["KEY"], "***");
}

#[test]
fn a_database_is_shown_without_its_password() {
    assert_password_hidden("postgres://me:hunter2@db/shop?sslmode=require", "postgres://me@db:5432/shop");
    assert_password_hidden("redis+sentinel://a/m?sentinel_password=hunter2", "redis+sentinel://a:26379/m");
}

fn assert_password_hidden(url: &str, shown: &str) {
    let by_file = load_config_from_yaml(&format!("store: '{url}'")).map_err(|(_, f)| f).unwrap();
    let flag = ConfigFlag { name: "--store".into(), setting_path: "store".into(), value: url.into() };
    let by_flag = ConfigInputs { flags: vec![flag], ..ConfigFolder::new().inputs() }.load_config().unwrap();
    let env: Environment = [("POINTSMAN_STORE", url)].into_iter().collect();
    let by_env = ConfigInputs { env, ..ConfigFolder::new().inputs() }.load_config().unwrap();
    for config in [&by_file, &by_flag, &by_env] {
        assert!(config.to_yaml().contains(shown), "{}", config.to_yaml());
        assert!(config.to_json_with_locations()["settings"]["store"].as_str().unwrap().starts_with(shown));
        assert!(
            !config.to_json_with_locations().to_string().contains("hunter2"),
            "{}",
            config.to_json_with_locations()
        );
        assert!(!config.to_yaml().contains("hunter2") && !format!("{config:?}").contains("hunter2"));
        assert!(!format!("{:?}", config.warnings).contains("hunter2"));
    }
    assert_eq!([by_file.warnings.len(), by_flag.warnings.len(), by_env.warnings.len()], [1, 1, 0]);
    let warning = by_file.warnings[0].to_string();
    assert!(warning.contains("can see the database password; put the URL into POINTSMAN_STORE"), "{warning}");
}

#[test]
fn files_and_a_folder_are_merged_and_a_conflict_names_both_locations() {
    let config_folder = ConfigFolder::new();
    std::fs::create_dir(config_folder.dir.path().join("conf.d")).unwrap();
    let first = config_folder
        .write_file("first.yml", "handlers: {a: {run: {command: [sh]}}}\nevent_handlers: {x: [a, b]}\n");
    config_folder.write_file("conf.d/2.yaml", "handlers: {b: {run: {command: [sh]}}}\n");
    config_folder.write_file("conf.d/.hidden.yml", "nonsense");
    config_folder.write_file("conf.d/notes.txt", "nonsense");
    let dir = Some(config_folder.dir.path().join("conf.d"));
    let inputs = ConfigInputs { files: vec![first], config_dir: dir, ..ConfigInputs::default() };
    assert_eq!(inputs.load_config().unwrap().handlers.len(), 2);
    config_folder.write_file("conf.d/1.yml", "handlers: {a: {run: {command: [sh]}}}\n");
    let faults = config_folder.strip_folder_path(inputs.load_config().unwrap_err());
    assert!(
        faults.starts_with("conf.d/1.yml:1:12: `handlers.a` is already set at first.yml:1:12\n"),
        "{faults}"
    );
}

#[test]
fn a_missing_file_or_folder_is_a_fault() {
    let inputs = ConfigInputs {
        files: vec!["no/such.yml".into()],
        config_dir: Some("no/folder".into()),
        ..ConfigInputs::default()
    };
    let faults = inputs.load_config().unwrap_err().to_string();
    assert!(faults.contains("no/such.yml: cannot be read: "), "{faults}");
    assert!(faults.contains("no/folder: this folder cannot be read: "), "{faults}");
}

#[test]
fn variables_override_files_and_flags_override_variables() {
    let config_folder = ConfigFolder::new();
    config_folder
        .write_file("pointsman.yml", "workers: 1\nstore: sqlite:a.db\nserver: {listen: '127.0.0.1:1'}\n");
    let env: Environment =
        [("POINTSMAN_WORKERS", "2"), ("POINTSMAN_SERVER__LISTEN", "127.0.0.1:2")].into_iter().collect();
    let flag = ConfigFlag {
        name: "--listen".into(),
        setting_path: "server.listen".into(),
        value: "127.0.0.1:3".into(),
    };
    let config = ConfigInputs { env, flags: vec![flag], ..config_folder.inputs() }.load_config().unwrap();
    assert_eq!((config.max_running_tasks, config.listen_address.port()), (2, 3));
    assert_eq!(config.store_url.to_string(), "sqlite:a.db");
    let yaml = config_folder.strip_folder_path(config.to_yaml());
    assert!(yaml.contains("workers: 2  # POINTSMAN_WORKERS\n"), "{yaml}");
    assert!(yaml.contains("  listen: 127.0.0.1:3  # --listen\n"), "{yaml}");
    assert!(yaml.contains("store: sqlite:a.db  # pointsman.yml:2\n"), "{yaml}");
    assert!(yaml.contains("  drain: 10s  # default\n"), "{yaml}");
}

#[test]
fn faults_in_variables_and_flags_name_the_variable_or_flag() {
    let env: Environment =
        [("POINTSMAN_WORKERS", "none"), ("POINTSMAN_SERVICES", "[http")].into_iter().collect();
    let flag = ConfigFlag { name: "--store".into(), setting_path: "store".into(), value: "x".into() };
    let faults = ConfigInputs { env, flags: vec![flag], ..ConfigFolder::new().inputs() }
        .load_config()
        .unwrap_err()
        .to_string();
    assert!(faults.contains("POINTSMAN_WORKERS: \"none\" is not a whole number\n"), "{faults}");
    assert!(faults.contains("POINTSMAN_SERVICES: this is not YAML: "), "{faults}");
    assert!(faults.contains("--store: a store is given as a URL"), "{faults}");
}

#[test]
fn a_server_beyond_loopback_may_call_loopback_targets_only_if_allowed() {
    let target = "handlers: {a: {run: {http: 'http://127.0.0.1:9/'}}}\nevent_handlers: {x: [a]}\n";
    assert!(load_config_from_yaml(target).is_ok());
    let tokens = format!("auth: {{tokens: [{{name: a, role: admin, sha256: '{}'}}]}}", "0".repeat(64));
    let open = format!("server: {{listen: '0.0.0.0:7646'}}\n{tokens}\n{target}");
    assert!(format_faults_of(&open).contains("127.0.0.1 may not be reached"), "{}", format_faults_of(&open));
    assert!(load_config_from_yaml(&format!("network: {{allow: [127.0.0.1]}}\n{open}")).is_ok());
    assert!(load_config_from_yaml(&format!("network: {{allow_loopback: true}}\n{open}")).is_ok());
}

#[test]
fn a_server_beyond_loopback_needs_a_token() {
    let faults = format_faults_of("server: {listen: '0.0.0.0:7646'}\n");
    let want = "pointsman.yml:1:18: the server listens beyond loopback on 0.0.0.0:7646, but no token is configured; \
                add one to `auth.tokens`\n";
    assert!(faults.starts_with(want), "{faults}");
    assert!(load_config_from_yaml("server: {listen: '0.0.0.0:7646'}\nservices: [worker]\n").is_ok());
}

#[test]
fn loading_with_placeholder_secrets_reports_unset_variables_as_warnings() {
    let config_folder = ConfigFolder::new();
    let text = "handlers:\n  a: {run: {http: 'https://x.example/', secret: 'env:KEY'}}\n\
                event_handlers: {x: [a]}\n\
                auth:\n  tokens:\n  - {name: b, role: admin, env: ONE}\n  - {name: c, role: admin, env: TWO}\n";
    config_folder.write_file("pointsman.yml", text);
    assert_eq!(
        config_folder.inputs().load_config().map(drop).unwrap_err().len(),
        3,
        "unset secrets are faults"
    );
    let (config, unset) =
        config_folder.inputs().load_with_placeholder_secrets().unwrap_or_else(|faults| panic!("{faults}"));
    let unset: Vec<String> = unset.iter().map(|warning| config_folder.strip_folder_path(warning)).collect();
    assert_eq!(
        unset,
        [
            "pointsman.yml:2:49: the environment variable \"KEY\" is not set",
            "pointsman.yml:6:33: the environment variable \"ONE\" is not set",
            "pointsman.yml:7:33: the environment variable \"TWO\" is not set",
        ]
    );
    assert!(!config.to_yaml().contains("whsec_"), "placeholders of secrets are not shown");
    config_folder.write_file("pointsman.yml", format!("{text}worker: 1\n"));
    let faults = config_folder.inputs().load_with_placeholder_secrets().map(drop).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults}");
}

#[test]
fn quick_start_configuration_at_the_repository_root_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let env: Environment = std::env::var("PATH").map(|path| ("PATH", path)).into_iter().collect();
    let config = ConfigInputs { working_dir: root, env, ..ConfigInputs::default() }
        .load_config()
        .unwrap_or_else(|f| panic!("{f}"));
    assert!(config.handlers.len() >= 2 && !config.schedules.is_empty());
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, Vec::<String>::new());
}

/// Random sequences of words and signs that configurations contain.
fn random_yaml_fragments() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        Just("handlers"),
        Just("run"),
        Just("command"),
        Just("http"),
        Just("store"),
        Just("auth"),
        Just("tokens"),
        Just("schedules"),
        Just("emit"),
        Just("sources"),
        Just("chains"),
        Just("/a/b"),
        Just("nodes"),
        Just("id"),
        Just("next"),
        Just("end"),
        Just("order"),
        Just("path"),
        Just("collections"),
        Just("schedule"),
        Just("tenants"),
        Just("rate"),
        Just("pull"),
        Just("value"),
        Just("secret"),
        Just("x"),
        Just(": "),
        Just("- "),
        Just("\n"),
        Just("\n  "),
        Just("\n    "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just("&a "),
        Just("*a"),
        Just("!t "),
        Just("? "),
        Just("| \n"),
        Just(">"),
        Just("'"),
        Just("\""),
        Just("#"),
        Just("---\n"),
        Just("...\n"),
        Just("%YAML"),
        Just("\t"),
        Just("\u{feff}"),
        Just("é"),
        Just("\0"),
        Just("~"),
        Just("1"),
        Just("every 1s"),
        Just("\\"),
    ];
    prop::collection::vec(scrap, 0..60).prop_map(|scraps| scraps.concat())
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let config_folder = ConfigFolder::new();
        config_folder.write_file("pointsman.yml", bytes);
        let _ = config_folder.inputs().load_config().map_err(|faults| faults.to_string());
    }

    #[test]
    fn arbitrary_yaml_fragments_do_not_panic(text in random_yaml_fragments()) {
        let config_folder = ConfigFolder::new();
        config_folder.write_file("pointsman.yml", &text);
        match config_folder.inputs().load_config() {
            Ok(config) => drop(config.to_yaml()),
            Err(faults) => prop_assert!(!faults.to_string().is_empty()),
        }
    }
}

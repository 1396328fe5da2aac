//! Whole configurations with limits, weights, sources and their schedules.

use std::time::Duration;

use pointsman_core::fire::FireAction;
use pointsman_core::{Limits, Tenant, Weight};
use pointsman_engine::{HandlerSpec, Setup};

use super::*;

const SOURCES_AND_LIMITS_YAML: &str = r#"
tenants:
  shop: {weight: 3}
handlers:
  notify: {run: {command: [sh]}, concurrency: 4, concurrency_per_key: 1, rate: 100/m, weight: 2, ageing: 30s}
  audit: {run: pull, order: key, on_error: halt}
event_handlers:
  record: [{handler: audit, sync: true}, notify]
sources:
  shop:
    run: {command: [sh, sync.sh]}
    schedule: "@hourly"
    tenant: shop
    collections:
      - {name: orders, schedule: "0 0/5 * * * ?", timezone: Europe/Berlin, priority: 200}
      - {name: customers}
      - {name: archive, schedule: never}
  feed: {collections: [news]}
schedules:
  nightly: {cron: "0 3 * * *", emit: {type: record.due}, catch_up: all, overlap: skip, jitter: 10s, dialect: vixie}
"#;

/// Loads a configuration without a `PATH`, so that its commands are not searched.
fn load_valid_config(text: &str) -> (ConfigFolder, Config) {
    let config_folder = ConfigFolder::new();
    config_folder.write_file("pointsman.yml", text);
    let config = config_folder.inputs().load_config().unwrap_or_else(|faults| panic!("{faults}"));
    (config_folder, config)
}

#[test]
fn limits_weights_and_sources_are_part_of_the_engine_setup() {
    let (_folder, config) = load_valid_config(SOURCES_AND_LIMITS_YAML);
    let Setup { handlers, tenant_weights: tenants, schedules, .. } = config.build_setup().unwrap();
    let handler_facts = |spec: &HandlerSpec| {
        let kind = spec.runner.as_ref().map(|runner| runner.handler_kind());
        (spec.def.name.to_string(), kind, spec.def.pull, spec.def.source.is_some())
    };
    assert_eq!(
        handlers.iter().map(handler_facts).collect::<Vec<_>>(),
        [
            ("notify".into(), Some("command"), false, false),
            ("audit".into(), None, true, false),
            ("shop".into(), Some("command"), false, true),
            ("feed".into(), None, true, true),
        ]
    );
    let limits = Limits {
        concurrency: Some(4),
        concurrency_per_key: Some(1),
        rate: "100/m".parse().ok(),
        weight: Weight::new(2).unwrap(),
        ageing_interval: Some(Duration::from_secs(30)),
    };
    assert_eq!(handlers[0].def.limits, limits);
    assert_eq!(
        tenants.into_iter().collect::<Vec<_>>(),
        [(Tenant::new("shop").unwrap(), Weight::new(3).unwrap())]
    );
    let describe_action = |schedule: &ScheduleSpec| match &schedule.action {
        FireAction::EmitEvent(event) => format!("{} emits {}", schedule.name, event.event_type),
        FireAction::RunCollection(run) => format!("{} runs {}", schedule.name, run.source_collection),
        FireAction::AddOrder(order) => format!("{} adds to {}", schedule.name, order.chain),
    };
    assert_eq!(
        schedules.iter().map(describe_action).collect::<Vec<_>>(),
        ["nightly emits record.due", "shop/orders runs shop/orders", "shop/customers runs shop/customers"]
    );
}

#[test]
fn check_report_describes_sources_and_limits() {
    let (config_folder, _) = load_valid_config(SOURCES_AND_LIMITS_YAML);
    assert_eq!(
        config_folder.strip_folder_path(check_config(&config_folder.inputs(), Timestamp::from_millis(0))),
        "The configuration is good: 2 handlers, 1 routed event type, 2 sources, 3 schedules, 0 chains, 0 tokens.\n\
         the configuration was read from pointsman.yml\n\
         tenant shop: weight 3\n\
         handler notify: command sh, at most 4 at a time, at most 1 of one object at a time, at most 100/m, weight 2, \
         one point of priority more for each 30s of waiting\n\
         handler audit: pull\n\
         event record: audit (sync), notify\n\
         source shop: command sh; collections archive (only on request), customers, orders\n\
         source feed: pull; collections news (only on request)\n\
         schedule nightly: at 03:00 every day, emits record.due; next at 1970-01-01T03:00:00Z, 1970-01-02T03:00:00Z, \
         1970-01-03T03:00:00Z\n\
         schedule shop/orders: every 5 minutes, at second 0 in Europe/Berlin, synchronises shop/orders; next at \
         1970-01-01T00:05:00Z, 1970-01-01T00:10:00Z, 1970-01-01T00:15:00Z\n\
         schedule shop/customers: every hour at minute 0, synchronises shop/customers; next at 1970-01-01T01:00:00Z, \
         1970-01-01T02:00:00Z, 1970-01-01T03:00:00Z\n\
         warning: pointsman.yml:8:3: \"audit\" is synchronous and pulled: the handlers after it wait until a worker has \
         tried it"
    );
}

/// The example of the original specification, including its comment.
const DOCUMENTED_SOURCE_YAML: &str = r#"
sources:
  source_id:
    collections:
      - name: "sample_collection"
        schedule: "0/1 * 0 ? * * *" #cron expression — every minute
"#;

#[test]
fn documented_source_example_is_read_and_its_cron_expression_warned_about() {
    let (config_folder, config) = load_valid_config(DOCUMENTED_SOURCE_YAML);
    let source = &config.sources[0];
    assert!(source.def.pull);
    assert_eq!(config.schedules[0].schedule.name.as_str(), "source_id/sample_collection");
    let report = check_config(&config_folder.inputs(), Timestamp::from_millis(0));
    let warnings = &report.outcome.as_ref().unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{report}");
    assert_eq!(
        config_folder.strip_folder_path(&warnings[0]),
        "pointsman.yml:6:19: the schedule \"source_id/sample_collection\": fires 3,600 times a day, 60 times a minute: \
         every second between 00:00 and 00:59, every day. The first field is the second; `0 0/1 * ? * * *` fires once \
         a minute"
    );
}

#[test]
fn a_warning_inherited_by_collections_is_reported_once() {
    let (config_folder, _) = load_valid_config(
        "sources: {a: {schedule: every 10s, jitter: 1m, collections: [x, y, z, {name: w, schedule: every 5s}]}}",
    );
    let report = check_config(&config_folder.inputs(), Timestamp::from_millis(0));
    let warnings: Vec<String> = report
        .outcome
        .as_ref()
        .unwrap()
        .warnings
        .iter()
        .map(|warning| config_folder.strip_folder_path(warning))
        .collect();
    assert_eq!(
        warnings,
        [
            "pointsman.yml:1:25: the schedule \"a/x\": fires 8,640 times a day: every 10 seconds",
            "pointsman.yml:1:25: the schedule \"a/x\": is delayed by up to 1m, but fires again after 10s",
            "pointsman.yml:1:91: the schedule \"a/w\": fires 17,280 times a day: every 5 seconds",
            "pointsman.yml:1:91: the schedule \"a/w\": is delayed by up to 1m, but fires again after 5s",
        ]
    );
}

#[test]
fn all_faults_of_sources_and_limits_are_reported_with_their_locations() {
    let text = r#"
tenants: {shop: {wieght: 3}}
handlers:
  index: {run: {command: [sh]}, concurrency: 0, concurrency_per_key: 2, rate: often}
event_handlers:
  record: [index, shop]
sources:
  index: {collections: [a]}
  shop: {shedule: "@hourly", collections: []}
schedules:
  shop: {cron: "@daily", emit: {type: x}, overlap: never}
"#;
    let want = r#"
pointsman.yml:2:18: unknown setting "wieght" of a tenant; did you mean `weight`?
    2 | tenants: {shop: {wieght: 3}}
      |                  ^
pointsman.yml:4:46: 0 is too small; the least is 1
    4 |   index: {run: {command: [sh]}, concurrency: 0, concurrency_per_key: 2, rate: often}
      |                                              ^
pointsman.yml:4:70: tasks of one object run one at a time to keep their order; set `order: none` to let more of them run
    4 |   index: {run: {command: [sh]}, concurrency: 0, concurrency_per_key: 2, rate: often}
      |                                                                      ^
pointsman.yml:4:79: "often" is not a rate; write one like `10/s`, `100/m`, `1000/h` or `5000/d`
    4 |   index: {run: {command: [sh]}, concurrency: 0, concurrency_per_key: 2, rate: often}
      |                                                                               ^
pointsman.yml:6:19: "shop" is a source, and a source gets no events
    6 |   record: [index, shop]
      |                   ^
pointsman.yml:8:3: the name "index" is already used at pointsman.yml:4:3; handlers, sources and schedules share one namespace
    8 |   index: {collections: [a]}
      |   ^
pointsman.yml:9:10: unknown setting "shedule" of a source; did you mean `schedule`?
    9 |   shop: {shedule: "@hourly", collections: []}
      |          ^
pointsman.yml:9:43: a source needs at least one collection
    9 |   shop: {shedule: "@hourly", collections: []}
      |                                           ^
pointsman.yml:11:3: the name "shop" is already used at pointsman.yml:9:3; handlers, sources and schedules share one namespace
   11 |   shop: {cron: "@daily", emit: {type: x}, overlap: never}
      |   ^
pointsman.yml:11:52: "never" is not one of skip, queue, cancel
   11 |   shop: {cron: "@daily", emit: {type: x}, overlap: never}
      |                                                    ^
10 faults"#;
    assert_eq!(format_faults_of(text), want.trim_start());
}

#[test]
fn variables_override_sources_and_limits() {
    let config_folder = ConfigFolder::new();
    config_folder.write_file("pointsman.yml", SOURCES_AND_LIMITS_YAML);
    let variables = [
        ("POINTSMAN_TENANTS__SHOP__WEIGHT", "7"),
        ("POINTSMAN_HANDLERS__NOTIFY__RATE", "5/s"),
        ("POINTSMAN_HANDLERS__NOTIFY__RUN", "pull"),
        ("POINTSMAN_SOURCES__FEED__SCHEDULE", "@daily"),
        ("POINTSMAN_SCHEDULES__NIGHTLY__CATCH_UP", "none"),
    ];
    let env: Environment = variables.into_iter().collect();
    let config = ConfigInputs { env, ..config_folder.inputs() }
        .load_config()
        .unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(config.tenant_weights.values().map(|weight| weight.get()).collect::<Vec<_>>(), [7]);
    let notify = &config.handlers[0].def;
    assert_eq!((notify.limits.rate, notify.pull), ("5/s".parse().ok(), true));
    let last = &config.schedules.last().unwrap().schedule;
    assert_eq!((last.name.as_str(), last.cron.expression().as_str()), ("feed/news", "@daily"));
    assert_eq!(config.schedules[0].schedule.catch_up, pointsman_core::fire::CatchUpPolicy::None);
    let yaml = config.to_yaml();
    assert!(yaml.contains("    schedule: \"@daily\"  # POINTSMAN_SOURCES__FEED__SCHEDULE\n"), "{yaml}");
}

#[test]
fn displayed_sources_and_limits_parse_to_the_same_setup() {
    let (config_folder, config) = load_valid_config(SOURCES_AND_LIMITS_YAML);
    let yaml = config.to_yaml();
    config_folder.write_file("pointsman.yml", &yaml);
    let again = config_folder.inputs().load_config().unwrap_or_else(|faults| panic!("{faults}\n{yaml}"));
    let setup_parts = |config: &Config| {
        let Setup { handlers, tenant_weights: tenants, schedules, .. } = config.build_setup().unwrap();
        (handlers.into_iter().map(|spec| spec.def).collect::<Vec<_>>(), tenants, schedules)
    };
    assert_eq!(setup_parts(&again), setup_parts(&config), "{yaml}");
}

#[test]
fn ten_thousand_collections_are_read() {
    let many: String =
        (0..10_000).map(|n| format!("   - {{name: c{n}, schedule: every {}s}}\n", n + 60)).collect();
    let (config_folder, config) = load_valid_config(&format!("sources:\n shop:\n  collections:\n{many}"));
    assert_eq!(config.schedules.len(), 10_000);
    assert!(check_config(&config_folder.inputs(), Timestamp::from_millis(0)).is_valid());
}

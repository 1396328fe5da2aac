//! The report of `config check`: summaries, warnings and the locations of faults.

use pointsman_engine::handlers::command::{BadRunAsUser, RunAsUser};

use super::*;

#[test]
fn check_report_describes_handlers_routes_schedules_and_warnings() {
    let config_folder = ConfigFolder::new();
    config_folder.write_file(
        "pointsman.yml",
        "handlers:\n  a: {run: {http: 'https://x.example/in?key=1'}}\n  b: {run: {command: [./b.sh]}}\n\
         event_handlers:\n  x: [a]\n  x.y: [{handler: a, sync: true}]\n  z: []\n\
         schedules:\n  beat: {cron: every 60s, emit: {type: q}}\n\
         \x20 busy: {cron: '0/1 * 0 ? * * *', timezone: Europe/Berlin, emit: {type: x}}\n",
    );
    let report = check_config(&config_folder.inputs(), Timestamp::from_millis(0));
    assert_eq!(
        config_folder.strip_folder_path(&report),
        "The configuration is good: 2 handlers, 2 routed event types, 0 sources, 2 schedules, 0 chains, 0 tokens.\n\
         the configuration was read from pointsman.yml\n\
         handler a: http https://x.example/in\n\
         handler b: command b.sh\n\
         event x: a\n\
         event x.y: a (sync)\n\
         schedule beat: every minute, counted from 1970 in UTC, emits q; next at 1970-01-01T00:01:00Z, 1970-01-01T00:02:00Z, 1970-01-01T00:03:00Z\n\
         schedule busy: every second between 00:00 and 00:59, every day in Europe/Berlin, emits x; next at 1970-01-01T23:00:00Z, 1970-01-01T23:00:01Z, 1970-01-01T23:00:02Z\n\
         warning: pointsman.yml:3:3: nothing routes to the handler \"b\"\n\
         warning: pointsman.yml:3:3: the program b.sh does not exist\n\
         warning: pointsman.yml:7:3: events of type \"z\" are routed to no handler\n\
         warning: pointsman.yml:9:3: the schedule \"beat\": emits q, which is routed to no handler\n\
         warning: pointsman.yml:10:3: the schedule \"busy\": fires 3,600 times a day, 60 times a minute: every second between \
         00:00 and 00:59, every day. The first field is the second; `0 0/1 * ? * * *` fires once a minute"
    );
    assert!(report.is_valid());
    config_folder.write_file("pointsman.yml", "workers: x\n");
    assert!(!check_config(&config_folder.inputs(), Timestamp::MIN).is_valid());
}

#[test]
fn tokens_without_an_admin_are_warned_about() {
    let config_folder = ConfigFolder::new();
    let check_with = |role: &str, more: &str| {
        let token = format!("{{name: a, role: {role}, sha256: '{}'}}", "0".repeat(64));
        config_folder.write_file("pointsman.yml", format!("{more}auth: {{tokens: [{token}]}}\n"));
        config_folder.strip_folder_path(check_config(&config_folder.inputs(), Timestamp::MIN))
    };
    let good = "The configuration is good: 0 handlers, 0 routed event types, 0 sources, 0 schedules, 0 chains, 1 token.\n\
                the configuration was read from pointsman.yml";
    let warning = "\nwarning: pointsman.yml:1:16: no admin among the tokens; the token of the first start is no \
                 longer accepted";
    assert_eq!(check_with("admin", ""), good);
    assert_eq!(check_with("operator", ""), format!("{good}{warning}"));
    assert_eq!(check_with("operator", "services: [worker]\n"), good, "a process without HTTP needs no admin");
}

#[test]
fn a_fault_of_a_cron_expression_points_at_the_wrong_field() {
    for (cron, location) in [
        ("0 30 * * *", "pointsman.yml:1:31: hour field: hours are 0 to 23, got `30`\n"),
        ("'0 30 * * *'", "pointsman.yml:1:32: hour field: hours are 0 to 23, got `30`\n"),
        ("\"0 30 * * *\"", "pointsman.yml:1:32: hour field: hours are 0 to 23, got `30`\n"),
        ("\"0\\x2030 * * *\"", "pointsman.yml:1:29: character 3 (hour): hours are 0 to 23, got `30`\n"),
    ] {
        let faults =
            format_faults_of(&format!("schedules: {{nightly: {{cron: {cron}, emit: {{type: x}}}}}}\n"));
        assert!(faults.starts_with(location), "{faults}");
    }
    let yaml = "schedules: {nightly: {cron: '@daily', emit: {type: x}}}\n";
    let config_folder = ConfigFolder::new();
    config_folder.write_file("pointsman.yml", yaml);
    let env: Environment = [("POINTSMAN_SCHEDULES__NIGHTLY__CRON", "0 30 * * *")].into_iter().collect();
    let faults = ConfigInputs { env, ..config_folder.inputs() }.load_config().unwrap_err().to_string();
    let want = "POINTSMAN_SCHEDULES__NIGHTLY__CRON: character 3 (hour): hours are 0 to 23, got `30`\n";
    assert!(faults.starts_with(want), "{faults}");
}

#[test]
fn check_report_names_the_user_and_group_of_commands() {
    let config_folder = ConfigFolder::new();
    config_folder.write_file(
        "pointsman.yml",
        "handlers:\n  a: {run: {command: [sh], user: '65534', group: '65533'}, concurrency: 2}\n\
         \x20 b: {run: {command: [sh], group: root}}\n  c: {run: {command: [sh]}}\n\
         event_handlers: {x: [a, b, c]}\n\
         sources: {shop: {run: {command: [sh], user: root}, collections: [orders]}}\n",
    );
    let report = check_config(&config_folder.inputs(), Timestamp::MIN);
    if RunAsUser::find(Some("65534"), Some("65533")) == Err(BadRunAsUser::NotPermitted) {
        assert!(!report.is_valid(), "this process may not switch users");
        return;
    }
    let text = config_folder.strip_folder_path(&report);
    for want in [
        "\nhandler a: command sh as user 65534, group 65533, at most 2 at a time\n",
        "\nhandler b: command sh as group root\n",
        "\nhandler c: command sh\n",
        "\nsource shop: command sh as user root; collections orders (only on request)",
    ] {
        assert!(text.contains(want), "{want:?} is missing:\n{text}");
    }
}

#[test]
fn check_report_warns_of_commands_that_would_run_as_root() {
    let config_folder = ConfigFolder::new();
    let handlers = "handlers:\n  web: {run: pull}\n  a: {run: {command: [sh]}}\n  b: {run: {command: [sh]}}\n\
                    event_handlers: {x: [web, a, b]}\n\
                    sources: {shop: {run: {command: [sh]}, collections: [orders]}}\n";
    config_folder.write_file("pointsman.yml", handlers);
    let warnings = |env: Environment| {
        let inputs = ConfigInputs { env, ..config_folder.inputs() };
        let summary =
            check_config(&inputs, Timestamp::MIN).outcome.unwrap_or_else(|faults| panic!("{faults}"));
        summary.warnings.iter().map(|warning| config_folder.strip_folder_path(warning)).collect::<Vec<_>>()
    };
    assert_eq!(warnings(Environment::default()), [""; 0]);
    assert_eq!(
        warnings(Environment::default().with_root(true)),
        [
            "pointsman.yml:3:3: the commands of a, b and shop would run as root; set `user` in their `run`, or run the \
          server as a user other than root"
        ]
    );
    config_folder.write_file("pointsman.yml", "handlers: {a: {run: pull}}\nevent_handlers: {x: [a]}\n");
    assert_eq!(warnings(Environment::default().with_root(true)), [""; 0]);
}

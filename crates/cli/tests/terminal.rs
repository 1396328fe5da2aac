//! Output on a terminal: tables that fit, colours, progress, live views, and escaped control characters.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

#[path = "common/terminal.rs"]
mod terminal;
#[path = "common/test_server.rs"]
mod test_server;

use std::io::Write;
use std::process::{Command, Stdio};

use terminal::{TestTerminal, strip_colors};
use test_server::ServerFixture;

const CONFIG: &str = r#"
handlers:
  notify-customers-about-their-orders: {run: pull, concurrency: 4, rate: 100/m}
  fail:
    run: {command: ["sh", "-c", "echo 'the target has no time for this now, and will have none tomorrow' >&2; exit 3"]}
    retry: {max: 0}
    order: none
  say: {run: {command: ["sh", "-c", "printf 'red \\033[31m and \\302\\233 done\\n'"]}, order: none}
  wait: {run: {command: ["sh", "-c", "echo started; while [ ! -e finish ]; do sleep 0.05; done"]}}
event_handlers:
  record.published: [notify-customers-about-their-orders, say]
  record.spoilt: [fail]
  job.requested: [wait]
sources:
  shop: {run: {command: ["true"]}, collections: [{name: orders, schedule: "every 1h"}]}
schedules:
  nightly: {cron: "0 3 * * *", timezone: Europe/Berlin, emit: {type: record.published}}
chains:
  /publish/article:
    nodes:
      - {id: render, handler: say, next: deploy}
      - {id: deploy, handler: fail, next: done}
      - {id: done, end: true}
"#;

/// The output of a command on a terminal of this many columns.
fn run_on_terminal(pointsman: &ServerFixture, columns: u16, arguments: &[&str]) -> String {
    TestTerminal::open(&pointsman.command(arguments), columns).wait_for_exit().0
}

/// The width of the widest line, with one column per character.
fn max_line_width(text: &str) -> usize {
    strip_colors(text).lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Starts a server and creates data for every table.
fn start_server_with_data() -> (ServerFixture, test_server::PointsmanServerProcess) {
    let mut pointsman = ServerFixture::new(CONFIG);
    let node = pointsman.serve();
    pointsman.run_ok(&["emit", "record.published", "--key", "record:1", "--value", r#"{"title":"Hello"}"#]);
    pointsman.run_ok(&["emit", "record.spoilt", "--key", "record:with-a-key-that-is-rather-long"]);
    pointsman.run_ok(&["orders", "add", "/publish/article,117", "--value", r#"{"title":"Hello"}"#]);
    pointsman.run_ok(&["run", "shop/orders"]);
    pointsman.run_ok(&["pause", "shop/orders", "--reason", "the shop is closed for a while"]);
    test_server::wait_until("two have failed", || {
        pointsman.run_json(&["tasks", "--status", "FAILED"])["tasks"].as_array().unwrap().len() == 2
    });
    (pointsman, node)
}

#[test]
fn every_table_fits_the_width_of_the_terminal() {
    let (pointsman, _node) = start_server_with_data();
    // The run of the source may wait too, if it was paused before it started; it has no event.
    let handler = "notify-customers-about-their-orders";
    let tasks = pointsman.run_json(&["tasks", "--status", "SCHEDULED", "--handler", handler]);
    let waiting = tasks["tasks"][0]["id"].as_str().unwrap().to_owned();
    let event = tasks["tasks"][0]["event_id"].to_string();
    let tables: &[&[&str]] = &[
        &["tasks"],
        &["tasks", "why", &waiting],
        &["handlers"],
        &["handlers", "show", "shop"],
        &["schedules"],
        &["schedules", "fires", "shop/orders"],
        &["orders"],
        &["orders", "stats"],
        &["chains"],
        &["chains", "show", "/publish/article"],
        &["nodes"],
        &["audit"],
        &["resume", "shop"],
        &["events", "show", &event],
        &["tasks", "show", &waiting],
    ];
    for arguments in tables {
        for columns in [120, 80, 40] {
            let shown = run_on_terminal(&pointsman, columns, arguments);
            // A word that is longer than the line and not in a table is not broken, so that it can be copied.
            let has_long_word =
                |line: &str| line.split_whitespace().any(|word| word.len() + 13 > columns.into());
            let too_wide: Vec<&str> =
                shown.lines().filter(|line| max_line_width(line) > columns.into()).collect();
            let is_table = !arguments.contains(&"show") && !arguments.contains(&"why");
            assert!(
                too_wide.iter().all(|line| !is_table && has_long_word(line)),
                "{arguments:?} at {columns}:\n{shown}\ntoo wide: {too_wide:#?}"
            );
        }
    }
    let contains_id = |text: &str| strip_colors(text).replace(char::is_whitespace, "").contains(&waiting);
    assert!(
        contains_id(&run_on_terminal(&pointsman, 80, &["tasks"])),
        "the id is complete, possibly on two lines"
    );
    assert!(
        pointsman.run_ok(&["tasks"]).lines().any(|line| line.ends_with(&waiting)),
        "and in one line in a pipe"
    );
}

#[test]
fn colours_are_used_on_terminals_or_on_request() {
    let (pointsman, _node) = start_server_with_data();
    let has_colours = |text: &str| text.contains('\x1b');
    assert!(has_colours(&run_on_terminal(&pointsman, 80, &["tasks"])));
    assert!(!has_colours(&pointsman.run_ok(&["tasks"])), "a pipe gets none");
    assert!(!has_colours(&run_on_terminal(&pointsman, 80, &["tasks", "--color", "never"])));
    assert!(has_colours(&pointsman.run_ok(&["tasks", "--color", "always"])));
    for (variable, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut command = pointsman.command(&["tasks", "show", "none-of-that-name"]);
        command.env(variable, value);
        assert!(!has_colours(&TestTerminal::open(&command, 80).wait_for_exit().0), "{variable}");
    }
    let json = run_on_terminal(&pointsman, 80, &["-o", "json", "tasks"]);
    assert!(!has_colours(&json) && serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
}

#[test]
fn untrusted_text_cannot_control_the_terminal() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let (reversed, value) = ("invoice\u{202e}fdp", "\"\u{9b}31m \u{202e} \u{7f}\"");
    let emitted = pointsman.run_json(&["emit", "record.published", "--key", reversed, "--value", value]);
    let (event, task) = (emitted["eventId"].to_string(), emitted["events"][0]["tasks"][1].as_str().unwrap());
    test_server::wait_until("it has run", || {
        pointsman.run_json(&["tasks", "show", task])["status"] == "SUCCESS"
    });
    pointsman.run_ok(&["pause", "say", "--reason", "red \x1b[31m and \u{202e}"]);
    let hostile = "\x1b]0;title\x07";
    let commands: &[&[&str]] = &[
        &["tasks"],
        &["tasks", "show", task],
        &["tasks", "logs", task],
        &["tasks", "logs", "-f", task],
        &["tasks", "show", hostile],
        &["tasks", "--key", reversed, "-o", "json"],
        &["objects", "show", reversed],
        &["events", "show", &event],
        &["events", "show", &event, "-o", "json"],
        &["handlers", "show", "say"],
        &["audit"],
        &["audit", "-o", "json"],
        &["emit", hostile],
        &["emit", "record.published", "--value", hostile],
        &["handlers", "show", hostile],
        &["pause", hostile],
        &["--url", hostile, "tasks"],
        &[hostile],
    ];
    for arguments in commands {
        let shown = run_on_terminal(&pointsman, 80, arguments);
        // The command's own colour codes end with `m` and contain only digits.
        let is_colour_code = |rest: &str| {
            rest.split_once('m').is_some_and(|(code, _)| code.chars().all(|c| c.is_ascii_digit()))
        };
        assert!(shown.split("\x1b[").skip(1).all(is_colour_code), "{arguments:?}: {shown:?}");
        let text = strip_colors(&shown);
        let is_unsafe = |c: char| {
            (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || ('\u{202a}'..='\u{202e}').contains(&c)
        };
        assert!(!text.contains(is_unsafe), "{arguments:?}: {text:?}");
    }
    let red = strip_colors(&run_on_terminal(&pointsman, 80, &["tasks", "logs", task]));
    assert!(red.contains(r"red \u{1b}[31m and \u{9b} done"), "{red:?}");
}

#[test]
fn progress_is_shown_only_on_a_terminal_and_on_standard_error() {
    let (pointsman, _node) = start_server_with_data();
    let arguments = ["tasks", "redrive", "--handler", "fail", "--rate", "2/s", "--yes", "-o", "json"];
    let bar =
        TestTerminal::open_redirected(&pointsman.command(&arguments), 80, "> out.json").wait_for_exit().0;
    assert!(bar.contains("0/2"), "{bar:?}");
    let job: serde_json::Value =
        serde_json::from_slice(&std::fs::read(pointsman.file_path("out.json")).unwrap()).unwrap();
    assert_eq!(job["state"], "done");
    test_server::wait_until("it has failed again", || {
        !pointsman.run_json(&["tasks", "--status", "FAILED", "--handler", "fail"])["tasks"]
            .as_array()
            .unwrap()
            .is_empty()
    });
    let without_terminal = pointsman.run_command(&arguments);
    assert_eq!(String::from_utf8_lossy(&without_terminal.stderr), "", "no progress without a terminal");

    let file = "{\"type\":\"a\"}\n".repeat(3000);
    std::fs::write(pointsman.file_path("events.jsonl"), file).unwrap();
    let without_terminal = pointsman.run_command(&["emit", "--file", "events.jsonl"]);
    assert_eq!(
        String::from_utf8_lossy(&without_terminal.stderr),
        "no handler is configured for 3000 events\n"
    );
}

#[test]
fn a_redrive_asks_for_confirmation_on_a_terminal() {
    let (pointsman, _node) = start_server_with_data();
    let mut terminal = TestTerminal::open(&pointsman.command(&["tasks", "redrive", "--handler", "fail"]), 80);
    terminal.wait_for_text("[y/N] ");
    terminal.type_keys("n\n");
    let (shown, code) = terminal.wait_for_exit();
    assert_eq!(code, Some(1));
    assert!(strip_colors(&shown).contains("error: not confirmed; no task was retried"), "{shown:?}");
}

#[test]
fn live_views_exit_with_130_when_interrupted() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let task =
        pointsman.run_json(&["emit", "job.requested"])["events"][0]["tasks"][0].as_str().unwrap().to_owned();
    let mut logs = TestTerminal::open(&pointsman.command(&["tasks", "logs", "-f", &task]), 80);
    logs.wait_for_text("started");
    logs.type_keys("\x03");
    assert_eq!(logs.wait_for_exit().1, Some(130));
    let mut watch = TestTerminal::open(&pointsman.command(&["watch", "--since-start"]), 80);
    watch.wait_for_text("job.requested");
    watch.type_keys("\x03");
    assert_eq!(watch.wait_for_exit().1, Some(130));
    std::fs::write(pointsman.file_path("finish"), "").unwrap();
}

#[test]
fn long_lines_of_a_live_view_are_wrapped() {
    let mut pointsman = ServerFixture::new("");
    let _node = pointsman.serve();
    pointsman.run_ok(&[
        "emit",
        "record.published",
        "--key",
        "record:1",
        "--value",
        r#"{"title": "Hello, all of you"}"#,
    ]);
    for columns in [80, 40] {
        let command = pointsman.command(&["watch", "--since-start", "--return", "record"]);
        let mut watch = TestTerminal::open(&command, columns);
        let shown = watch.wait_for_text("you\"}");
        watch.type_keys("\x03");
        assert!(max_line_width(&shown.replace('\r', "")) <= columns.into(), "{shown}");
        assert!(strip_colors(&shown).contains("\n              "), "indented behind the time: {shown}");
    }
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let (pointsman, _node) = start_server_with_data();
    for arguments in [
        "tasks",
        "handlers -o json",
        "completions bash",
        "man",
        "--help",
        "schedules next 'every 1s' --count 1000",
    ] {
        let line = format!(r#""$0" {arguments} | head -c 1; echo " ${{PIPESTATUS[0]}}""#);
        let output = Command::new("bash")
            .args(["-c", &line, env!("CARGO_BIN_EXE_pointsman")])
            .env("POINTSMAN_URL", format!("http://{}", pointsman.address()))
            .env("POINTSMAN_TOKEN", pointsman.token())
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).ends_with(" 0\n"), "{arguments}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments}");
    }
    // A closed standard error does not change the exit code.
    let mut command = pointsman.command(&["tasks", "show", "none-of-that-name"]);
    command.stderr(std::fs::File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(command.status().unwrap().code(), Some(1));
}

#[test]
fn a_multiline_payload_is_printed_as_one_line_of_json() {
    let mut pointsman = ServerFixture::new("");
    let _node = pointsman.serve();
    let id = pointsman.run_ok(&["emit", "record", "--value", "{\n  \"a\":\r\n 1}"]);
    let shown = pointsman.run_ok(&["events", "show", &id, "-o", "json"]);
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["event"]["value"]["a"], 1);
}

#[test]
fn reading_from_a_terminal_prints_a_prompt_and_from_a_pipe_does_not() {
    let mut pointsman = ServerFixture::new("");
    let _node = pointsman.serve();
    let mut terminal = TestTerminal::open(&pointsman.command(&["emit", "record", "--value", "-"]), 80);
    terminal.wait_for_text("reading standard input");
    terminal.type_keys("{\"a\":1}\n\x04");
    assert_eq!(terminal.wait_for_exit().1, Some(0));

    let piped = |arguments: &[&str], text: &str| {
        let mut child =
            pointsman.command(arguments).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
    };
    assert_eq!(
        piped(&["emit", "record", "--value", "-"], "7"),
        "no handler or chain is configured for record\n"
    );
    assert_eq!(
        piped(&["emit", "--file", "-"], "{\"type\":\"record\"}"),
        "no handler is configured for 1 event\n"
    );
    assert!(
        piped(&["emit", "record", "--value", "-"], "")
            .starts_with("error: standard input is not a valid value")
    );
}

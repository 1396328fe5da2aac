//! What a person sees: tables that fit, colours, progress, live views, and nothing that steers the terminal.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

#[path = "common/node.rs"]
mod node;
#[path = "common/terminal.rs"]
mod terminal;

use std::io::Write;
use std::process::{Command, Stdio};

use node::Place;
use terminal::{Terminal, plain};

const CONFIG: &str = r#"
handlers:
  notify-customers-about-their-orders: {run: pull, concurrency: 4, rate: 100/m}
  fail:
    run: {command: ["sh", "-c", "echo 'the target has no time for this now, and will have none tomorrow' >&2; exit 3"]}
    retry: {max: 0}
    order: none
  say: {run: {command: ["sh", "-c", "printf 'red \\033[31m and \\302\\233 done\\n'"]}, order: none}
  wait: {run: {command: ["sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.05; done"]}}
event_handlers:
  record.published: [notify-customers-about-their-orders, say]
  record.spoilt: [fail]
  job.asked: [wait]
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

/// What a command shows on a terminal of so many columns.
fn seen(place: &Place, columns: u16, words: &[&str]) -> String {
    Terminal::open(&place.command(words), columns).end().0
}

/// How many columns a line takes, where every character takes one.
fn widest(text: &str) -> usize {
    plain(text).lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// A server that has something of everything to show.
fn busy() -> (Place, node::Node) {
    let mut place = Place::new(CONFIG);
    let node = place.serve();
    place.ok(&["emit", "record.published", "--key", "record:1", "--value", r#"{"title":"Hello"}"#]);
    place.ok(&["emit", "record.spoilt", "--key", "record:with-a-key-that-is-rather-long"]);
    place.ok(&["orders", "add", "/publish/article,117", "--value", r#"{"title":"Hello"}"#]);
    place.ok(&["run", "shop/orders"]);
    place.ok(&["pause", "shop/orders", "--reason", "the shop is closed for a while"]);
    node::until("two have failed", || {
        place.json(&["tasks", "--status", "FAILED"])["tasks"].as_array().unwrap().len() == 2
    });
    (place, node)
}

#[test]
fn every_table_fits_the_terminal_whatever_its_width() {
    let (place, _node) = busy();
    let waiting =
        place.json(&["tasks", "--status", "SCHEDULED"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    let event = place.json(&["tasks", "--status", "SCHEDULED"])["tasks"][0]["event_id"].to_string();
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
    for words in tables {
        for columns in [120, 80, 40] {
            let shown = seen(&place, columns, words);
            // What is longer than the line by itself and stands in no table is left whole, to be copied.
            let is_whole = |line: &str| line.split_whitespace().any(|word| word.len() + 13 > columns.into());
            let too_wide: Vec<&str> = shown.lines().filter(|line| widest(line) > columns.into()).collect();
            let is_table = !words.contains(&"show") && !words.contains(&"why");
            assert!(
                too_wide.iter().all(|line| !is_table && is_whole(line)),
                "{words:?} at {columns}:\n{shown}\ntoo wide: {too_wide:#?}"
            );
        }
    }
    let ids = |text: &str| plain(text).replace(char::is_whitespace, "").contains(&waiting);
    assert!(ids(&seen(&place, 80, &["tasks"])), "an id is there whole, if on two lines");
    assert!(place.ok(&["tasks"]).lines().any(|line| line.ends_with(&waiting)), "and in one line in a pipe");
}

#[test]
fn colours_are_for_terminals_and_for_those_who_want_them() {
    let (place, _node) = busy();
    let coloured = |text: &str| text.contains('\x1b');
    assert!(coloured(&seen(&place, 80, &["tasks"])));
    assert!(!coloured(&place.ok(&["tasks"])), "a pipe gets none");
    assert!(!coloured(&seen(&place, 80, &["tasks", "--color", "never"])));
    assert!(coloured(&place.ok(&["tasks", "--color", "always"])));
    for (variable, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut command = place.command(&["tasks", "show", "none-of-that-name"]);
        command.env(variable, value);
        assert!(!coloured(&Terminal::open(&command, 80).end().0), "{variable}");
    }
    let plainly = seen(&place, 80, &["-o", "json", "tasks"]);
    assert!(!coloured(&plainly) && serde_json::from_str::<serde_json::Value>(&plainly).is_ok(), "{plainly}");
}

#[test]
fn nothing_that_came_from_elsewhere_steers_the_terminal() {
    let mut place = Place::new(CONFIG);
    let _node = place.serve();
    let (turned, value) = ("invoice\u{202e}fdp", "\"\u{9b}31m \u{202e} \u{7f}\"");
    let emitted = place.json(&["emit", "record.published", "--key", turned, "--value", value]);
    let (event, task) = (emitted["eventId"].to_string(), emitted["events"][0]["tasks"][1].as_str().unwrap());
    node::until("it has run", || place.json(&["tasks", "show", task])["status"] == "SUCCESS");
    place.ok(&["pause", "say", "--reason", "red \x1b[31m and \u{202e}"]);
    let wild = "\x1b]0;title\x07";
    let commands: &[&[&str]] = &[
        &["tasks"],
        &["tasks", "show", task],
        &["tasks", "logs", task],
        &["tasks", "logs", "-f", task],
        &["tasks", "show", wild],
        &["tasks", "--key", turned, "-o", "json"],
        &["objects", "show", turned],
        &["events", "show", &event],
        &["events", "show", &event, "-o", "json"],
        &["handlers", "show", "say"],
        &["audit"],
        &["audit", "-o", "json"],
        &["emit", wild],
        &["emit", "record.published", "--value", wild],
        &["handlers", "show", wild],
        &["pause", wild],
        &["--url", wild, "tasks"],
        &[wild],
    ];
    for words in commands {
        let shown = seen(&place, 80, words);
        // Ours end with an `m` and have only digits.
        let ours = |rest: &str| {
            rest.split_once('m').is_some_and(|(code, _)| code.chars().all(|c| c.is_ascii_digit()))
        };
        assert!(shown.split("\x1b[").skip(1).all(ours), "{words:?}: {shown:?}");
        let text = plain(&shown);
        let steers = |c: char| {
            (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || ('\u{202a}'..='\u{202e}').contains(&c)
        };
        assert!(!text.contains(steers), "{words:?}: {text:?}");
    }
    let red = plain(&seen(&place, 80, &["tasks", "logs", task]));
    assert!(red.contains(r"red \u{1b}[31m and \u{9b} done"), "{red:?}");
}

#[test]
fn progress_is_told_on_a_terminal_and_on_standard_error_alone() {
    let (place, _node) = busy();
    let words = ["tasks", "redrive", "--handler", "fail", "--rate", "2/s", "--yes", "-o", "json"];
    let bar = Terminal::with(&place.command(&words), 80, "> out.json").end().0;
    assert!(bar.contains("0/2"), "{bar:?}");
    let told: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("out.json")).unwrap()).unwrap();
    assert_eq!(told["state"], "done");
    node::until("it has failed again", || {
        !place.json(&["tasks", "--status", "FAILED", "--handler", "fail"])["tasks"]
            .as_array()
            .unwrap()
            .is_empty()
    });
    let quiet = place.run(&words);
    assert_eq!(String::from_utf8_lossy(&quiet.stderr), "", "nothing where nobody looks");

    let file = "{\"type\":\"a\"}\n".repeat(3000);
    std::fs::write(place.path("events.jsonl"), file).unwrap();
    let quiet = place.run(&["emit", "--file", "events.jsonl"]);
    assert_eq!(String::from_utf8_lossy(&quiet.stderr), "no handler gets 3000 of them\n");
}

#[test]
fn a_redrive_asks_whoever_sits_there() {
    let (place, _node) = busy();
    let mut terminal = Terminal::open(&place.command(&["tasks", "redrive", "--handler", "fail"]), 80);
    terminal.await_text("[y/N] ");
    terminal.press("n\n");
    let (shown, code) = terminal.end();
    assert_eq!(code, Some(1));
    assert!(plain(&shown).contains("error: nothing was run again"), "{shown:?}");
}

#[test]
fn live_views_end_with_130_when_they_are_interrupted() {
    let mut place = Place::new(CONFIG);
    let _node = place.serve();
    let task = place.json(&["emit", "job.asked"])["events"][0]["tasks"][0].as_str().unwrap().to_owned();
    let mut logs = Terminal::open(&place.command(&["tasks", "logs", "-f", &task]), 80);
    logs.await_text("begun");
    logs.press("\x03");
    assert_eq!(logs.end().1, Some(130));
    let mut watch = Terminal::open(&place.command(&["watch", "--since-start"]), 80);
    watch.await_text("job.asked");
    watch.press("\x03");
    assert_eq!(watch.end().1, Some(130));
    std::fs::write(place.path("go"), "").unwrap();
}

#[test]
fn what_a_live_view_has_no_room_for_stands_below() {
    let mut place = Place::new("");
    let _node = place.serve();
    place.ok(&[
        "emit",
        "record.published",
        "--key",
        "record:1",
        "--value",
        r#"{"title": "Hello, all of you"}"#,
    ]);
    for columns in [80, 40] {
        let command = place.command(&["watch", "--since-start", "--return", "record"]);
        let mut watch = Terminal::open(&command, columns);
        let shown = watch.await_text("you\"}");
        watch.press("\x03");
        assert!(widest(&shown.replace('\r', "")) <= columns.into(), "{shown}");
        assert!(plain(&shown).contains("\n              "), "behind the time: {shown}");
    }
}

#[test]
fn whoever_stops_reading_is_no_failure() {
    let (place, _node) = busy();
    for words in [
        "tasks",
        "handlers -o json",
        "completions bash",
        "man",
        "--help",
        "schedules next 'every 1s' --count 1000",
    ] {
        let line = format!(r#""$0" {words} | head -c 1; echo " ${{PIPESTATUS[0]}}""#);
        let output = Command::new("bash")
            .args(["-c", &line, env!("CARGO_BIN_EXE_pointsman")])
            .env("POINTSMAN_URL", format!("http://{}", place.address()))
            .env("POINTSMAN_TOKEN", place.token())
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).ends_with(" 0\n"), "{words}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words}");
    }
    // Nor is it one that changes the exit code, if nobody hears of an error.
    let mut command = place.command(&["tasks", "show", "none-of-that-name"]);
    command.stderr(std::fs::File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(command.status().unwrap().code(), Some(1));
}

#[test]
fn a_payload_of_many_lines_is_one_line_of_json() {
    let mut place = Place::new("");
    let _node = place.serve();
    let id = place.ok(&["emit", "record", "--value", "{\n  \"a\":\r\n 1}"]);
    let shown = place.ok(&["events", "show", &id, "-o", "json"]);
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["event"]["value"]["a"], 1);
}

#[test]
fn a_measurement_that_is_interrupted_leaves_nothing_behind() {
    let place = Place::new("");
    let mut bench = Terminal::open(&place.command(&["bench", "--only", "emits"]), 80);
    bench.await_text("emits");
    node::until("its folder is made", || left(&place) > 0);
    bench.press("\x03");
    let (shown, code) = bench.end();
    assert_eq!((code, left(&place)), (Some(130), 0), "{shown:?}");
}

/// How many folders there are in a place: a measurement makes some.
fn left(place: &Place) -> usize {
    let entries = place.path("").read_dir().unwrap().map(Result::unwrap);
    entries.filter(|entry| entry.file_type().unwrap().is_dir()).count()
}

#[test]
fn who_types_is_told_that_it_is_read_and_a_pipe_is_not() {
    let mut place = Place::new("");
    let _node = place.serve();
    let mut typing = Terminal::open(&place.command(&["emit", "record", "--value", "-"]), 80);
    typing.await_text("reading standard input");
    typing.press("{\"a\":1}\n\x04");
    assert_eq!(typing.end().1, Some(0));

    let piped = |words: &[&str], text: &str| {
        let mut child = place.command(words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
    };
    assert_eq!(piped(&["emit", "record", "--value", "-"], "7"), "no handler gets record\n");
    assert_eq!(piped(&["emit", "--file", "-"], "{\"type\":\"record\"}"), "no handler gets 1 of them\n");
    assert!(
        piped(&["emit", "record", "--value", "-"], "").starts_with("error: standard input holds no value")
    );
}

//! The answer comes after the disk: a SIGKILL cannot show that, because the system keeps what a dead process has
//! written. So the system calls themselves are looked at.

use super::node::{Place, until};

const CONFIG: &str = "handlers: {h: {run: {command: [\"true\"]}}}\nevent_handlers: {a: [h]}\n";

#[test]
fn an_emit_is_answered_after_its_fsync() {
    let mut place = Place::new(CONFIG);
    let trace = place.path("trace");
    let words = ["-D", "-f", "-y", "-s", "64", "-e", "trace=%desc,%network", "-o", trace.to_str().unwrap()];
    let node = place.serve_under("strace", &words);
    for n in 0..5 {
        place.ok(&["emit", "a", "--key", &format!("k{n}")]);
    }
    node.stop();
    let mut calls = String::new();
    until("the trace is whole", || {
        calls = std::fs::read_to_string(&trace).unwrap();
        calls.matches("HTTP/1.1 201").count() == 5 && calls.contains("exited with")
    });
    let calls: Vec<&str> = calls.lines().collect();
    let mut asked = 0;
    for answered in (0..calls.len()).filter(|at| calls[*at].contains("HTTP/1.1 201")) {
        let request = (asked..answered).rfind(|at| calls[*at].contains("POST /api/v1/events"));
        let between = &calls[request.expect("an answer has a request")..answered];
        assert!(synced(between), "no fsync of the log between request and answer:\n{}", between.join("\n"));
        asked = answered + 1;
    }
}

/// Whether the write-ahead log was written, and then brought to the disk.
fn synced(calls: &[&str]) -> bool {
    let log = |call: &&str, names: [&str; 2]| {
        call.contains(".db-wal") && names.iter().any(|name| call.contains(name))
    };
    let written = calls.iter().position(|call| log(call, ["pwrite64(", "write("]));
    let brought = calls.iter().rposition(|call| log(call, ["fsync(", "fdatasync("]));
    matches!((written, brought), (Some(written), Some(brought)) if written < brought)
}

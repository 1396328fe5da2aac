//! Acknowledgement after fsync. A SIGKILL cannot show this, because the kernel keeps what a killed process has written;
//! so the system calls are traced.

use super::test_server::{ServerFixture, wait_until};

const CONFIG: &str = "handlers: {h: {run: {command: [\"true\"]}}}\nevent_handlers: {a: [h]}\n";

#[test]
fn an_emit_is_acknowledged_after_its_fsync() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let trace = pointsman.file_path("trace");
    let arguments =
        ["-D", "-f", "-y", "-s", "64", "-e", "trace=%desc,%network", "-o", trace.to_str().unwrap()];
    let node = pointsman.serve_through("strace", &arguments);
    for n in 0..5 {
        pointsman.run_ok(&["emit", "a", "--key", &format!("k{n}")]);
    }
    node.stop();
    let mut calls = String::new();
    wait_until("the trace is complete", || {
        calls = std::fs::read_to_string(&trace).unwrap();
        calls.matches("HTTP/1.1 201").count() == 5 && calls.contains("exited with")
    });
    let calls: Vec<&str> = calls.lines().collect();
    let mut after_last = 0;
    for response in (0..calls.len()).filter(|at| calls[*at].contains("HTTP/1.1 201")) {
        let request = (after_last..response).rfind(|at| calls[*at].contains("POST /api/v1/events"));
        let between = &calls[request.expect("a response has a request")..response];
        assert!(
            is_wal_synced(between),
            "no fsync of the log between request and response:\n{}",
            between.join("\n")
        );
        after_last = response + 1;
    }
}

/// Whether the write-ahead log was written and then synced.
fn is_wal_synced(calls: &[&str]) -> bool {
    let is_wal_call = |call: &&str, names: [&str; 2]| {
        call.contains(".db-wal") && names.iter().any(|name| call.contains(name))
    };
    let written = calls.iter().position(|call| is_wal_call(call, ["pwrite64(", "write("]));
    let synced = calls.iter().rposition(|call| is_wal_call(call, ["fsync(", "fdatasync("]));
    matches!((written, synced), (Some(written), Some(synced)) if written < synced)
}

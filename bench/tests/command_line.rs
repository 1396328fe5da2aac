//! The program `pointsman-bench` as `cargo xtask bench` runs it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn bench_command(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pointsman-bench"));
    command.args(arguments).current_dir(dir).stdin(Stdio::null());
    command
}

fn run_bench(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    bench_command(arguments, folder.path()).output().unwrap()
}

fn assert_fails(arguments: &[&str], code: i32, expected_error: &str) {
    let output = run_bench(arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.contains(expected_error), "{error}");
}

#[test]
fn invalid_arguments_and_a_missing_server_program_are_explained() {
    assert_fails(&["--only", "latncy"], 2, "a similar value exists: 'latency'");
    let unsupported =
        "waiting is measured on Redis, not on SQLite; use --redis, or --store with the URL of a server";
    assert_fails(&["--only", "waiting"], 2, unsupported);
    assert_fails(&["--store", "mysql://host"], 2, "expected postgres://… or redis://…");
    let missing =
        "cannot measure the memory of the server no/such/file; build it with `cargo build --release`";
    assert_fails(&["--server", "no/such/file"], 1, missing);
}

#[test]
fn figures_are_printed_as_json() {
    let output = run_bench(&["--only", "limits", "--queues", "100", "-o", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["figures"][0]["unit"], "milliseconds");
}

#[test]
fn an_interrupted_benchmark_deletes_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let count_files = || folder.path().read_dir().unwrap().count();
    let mut command = bench_command(&["--only", "emits"], folder.path());
    let bench = command.stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while count_files() == 0 {
        assert!(Instant::now() < deadline, "the benchmark created no files");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(Pid::from_raw(bench.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = bench.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), count_files()), (Some(130), 0), "{error}");
    assert_eq!(error, "interrupted; the data of the benchmark was deleted\n");
}

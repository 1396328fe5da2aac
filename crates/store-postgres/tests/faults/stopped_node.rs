//! A node that is stopped inside a transaction.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use pointsman_core::store::{Journal, Store};
use pointsman_store_conformance::fixture::{NewEventExt, new_emit_batch, new_event};
use pointsman_store_postgres::Postgres as Opened;

use crate::common::invariants::assert_invariants;
use crate::common::test_load::{TEST_TIMEOUT, now, query_rows};
use crate::{connect, start_durable_server, wait_until_query_returns};

/// Environment variable with the database URL of the node process.
const URL_VARIABLE: &str = "POINTSMAN_STOPPED_NODE";

/// Runs in the node process: emits for each line of its input, and prints the result.
async fn run_as_node(url: &str) {
    let store = Opened::open(url, now()).await.unwrap();
    println!("\nopened");
    for line in std::io::stdin().lines() {
        let event = new_event("stopped").with_key("k").with_value(&line.unwrap());
        match store.append(vec![new_emit_batch([event])], None, now()).await {
            Ok(_) => println!("\nemitted"),
            Err(fault) => println!("\nrefused {fault}"),
        }
    }
    store.close();
}

/// The node process.
struct NodeProcess {
    child: Child,
    output_lines: Receiver<String>,
}

impl NodeProcess {
    fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "stopped_node::a_node_stopped_in_a_transaction_does_not_block_the_others",
                "--nocapture",
            ])
            .env(URL_VARIABLE, format!("{url}?application_name=stopped"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (line_sender, output_lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| line_sender.send(line))
        });
        let node = Self { child, output_lines };
        assert_eq!(node.next_line(), "opened");
        node
    }

    /// Returns the next line that the node prints, skipping the output of the test harness.
    fn next_line(&self) -> String {
        let results = ["opened", "emitted", "refused"];
        loop {
            let line = self.output_lines.recv_timeout(TEST_TIMEOUT).expect("the node prints a line");
            if results.iter().any(|word| line.starts_with(word)) {
                return line;
            }
        }
    }

    fn emit(&mut self, value: u32) {
        use std::io::Write;
        writeln!(self.child.stdin.as_mut().unwrap(), "{value}").unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Stops the process, and waits until all its threads have stopped, which may take a moment on a busy machine.
    fn suspend(&self) {
        kill(self.pid(), Signal::SIGSTOP).unwrap();
        let stopped = waitpid(self.pid(), Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert_eq!(stopped, WaitStatus::Stopped(self.pid(), Signal::SIGSTOP));
    }

    fn resume(&self) {
        kill(self.pid(), Signal::SIGCONT).unwrap();
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_stopped_in_a_transaction_does_not_block_the_others() {
    if let Ok(url) = std::env::var(URL_VARIABLE) {
        return run_as_node(&url).await;
    }
    let (_server, url) = start_durable_server();
    let store = Opened::open(&url, now()).await.unwrap();
    let (observer, other) = (connect(&url).await, connect(&url).await);
    let mut node = NodeProcess::start(&url);
    node.emit(1);
    assert_eq!(node.next_line(), "emitted");
    // The node is stopped while it waits for the write lock, and gets the lock while it is stopped.
    other.batch_execute("BEGIN; SELECT FROM pointsman.write_lock FOR UPDATE").await.unwrap();
    node.emit(2);
    let from_sessions_of_node = "FROM pg_stat_activity WHERE application_name = 'stopped'";
    wait_until_query_returns(
        &observer,
        &format!("SELECT count(*) {from_sessions_of_node} AND wait_event_type = 'Lock'"),
        1,
    )
    .await;
    node.suspend();
    other.batch_execute("COMMIT").await.unwrap();
    wait_until_query_returns(
        &observer,
        &format!("SELECT count(*) {from_sessions_of_node} AND state = 'idle in transaction'"),
        1,
    )
    .await;

    let appended = store.append(vec![new_emit_batch([new_event("other").with_key("k")])], None, now()).await;
    assert!(appended.is_ok(), "{appended:?}");
    wait_until_query_returns(
        &observer,
        &format!("SELECT count(*) {from_sessions_of_node} AND state = 'idle in transaction'"),
        0,
    )
    .await;
    node.resume();
    let reply = node.next_line();
    assert!(reply.starts_with("refused"), "{reply}");
    node.emit(3);
    assert_eq!(node.next_line(), "emitted", "the node recovers without help");
    assert_invariants(&url).await;
    let emitted = query_rows(
        &url,
        "SELECT string_agg(value, ' ' ORDER BY id) FROM pointsman.journal WHERE type = 'stopped'",
    );
    assert_eq!(emitted, [[Some("1 3".to_string())]]);
    store.close();
}

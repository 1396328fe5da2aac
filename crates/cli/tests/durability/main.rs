//! Kills the server with SIGKILL at random moments under load, and restarts it on the same file.
//!
//! ```text
//!  producers ──▶ pointsman serve, killed again and again ──▶ an HTTP target, a command's notes
//!                   │
//!                   └──▶ two readers: server-sent events, long polls
//! ```
//!
//! All observations from outside the server are collected in a [`history::History`], which checks the rules.
//! `cargo xtask durability` runs the same for longer.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

mod final_state;
mod fsync_trace;
mod history;
mod idempotency;
mod producer;
mod reader;
mod recording_handlers;

#[path = "../common/raw_http.rs"]
mod raw_http;
#[path = "../common/seed.rs"]
mod seed;
#[path = "../common/test_server.rs"]
mod test_server;

use std::sync::Arc;
use std::time::Duration;

use pointsman_api::client::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use history::{EmitRequest, FinalJournalEntry, History};
use pointsman_testing::Rng;
use producer::Producers;
use reader::ReconnectingJournalReader;
use recording_handlers::RecordingHttpTarget;
use test_server::{PointsmanServerProcess, ServerFixture, WAIT_TIMEOUT};

/// The variable that sets how often the server is killed.
const KILL_CYCLES_VARIABLE: &str = "POINTSMAN_TEST_CYCLES";
const DEFAULT_KILL_CYCLES: u64 = 20;
const PRODUCER_COUNT: usize = 4;
const WORKER_SLOTS: usize = 8;
/// The maximum number of acknowledged requests before a kill.
const MAX_REQUESTS_PER_CYCLE: usize = 120;

fn server_config(target: &RecordingHttpTarget) -> String {
    let at = target.address;
    let note = recording_handlers::NOTE_COMMAND;
    format!(
        r#"
workers: {WORKER_SLOTS}
journal: {{retain_events: 1000000000}}
history: {{retain_tasks: 1000000000}}
handlers:
  index: {{run: {{http: "http://{at}/index"}}, crashes: 1000000}}
  audit: {{run: {{http: "http://{at}/audit"}}, crashes: 1000000}}
  mirror: {{run: {{http: "http://{at}/mirror"}}, crashes: 1000000}}
  note: {{run: {{command: ["sh", "-c", "{note}"]}}, crashes: 1000000}}
event_handlers:
  record: [index]
  record.published: [{{handler: audit, sync: true}}, mirror]
  record.noted: [note]
"#
    )
}

/// The routes of the configuration, resolved by hand.
fn expected_routes() -> [(&'static str, &'static [&'static str]); 3] {
    [
        ("record.moved", &["index"]),
        ("record.published", &["index", "audit", "mirror"]),
        ("record.noted", &["index", "note"]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_however_often_the_server_is_killed() {
    let mut rng = Rng::new(seed::choose_seed());
    let cycles = seed::read_env_number(KILL_CYCLES_VARIABLE).unwrap_or(DEFAULT_KILL_CYCLES);
    let target = RecordingHttpTarget::start().await;
    let mut pointsman = ServerFixture::new(&server_config(&target));
    let (server, current_server) = watch::channel(None);
    let (end, ending) = watch::channel(None);
    let producers = Producers::new(current_server.clone());
    let running: Vec<_> =
        (0..PRODUCER_COUNT).map(|n| tokio::spawn(producers.clone().run_producer(n, rng.fork()))).collect();
    let readers = RunningReaders::start(&current_server, &ending);

    let mut kills = 0;
    for _ in 0..cycles {
        let node = start_and_share_client(&mut pointsman, &server);
        wait_for_acknowledgements(&producers, rng.next_below(MAX_REQUESTS_PER_CYCLE)).await;
        sleep(Duration::from_micros(rng.next_below(20_000) as u64)).await;
        // No new requests are sent to a server that is about to be killed; running ones are cut off.
        server.send_replace(None);
        node.kill();
        kills += 1;
        if rng.one_in(4) {
            // Recovery at the start must survive a kill as well.
            let node = pointsman.start_on_new_port_without_waiting();
            sleep(Duration::from_micros(rng.next_below(80_000) as u64)).await;
            node.kill();
            kills += 1;
        }
    }

    let _node = start_and_share_client(&mut pointsman, &server);
    wait_for_acknowledgements(&producers, 1).await;
    producers.stop();
    for producer in running {
        timeout(WAIT_TIMEOUT, producer).await.expect("every request gets a response").unwrap();
    }
    let client = producer::wait_for_server_client(&current_server).await;
    final_state::wait_until_idle(&client).await;
    let mut history = History {
        kill_count: kills,
        worker_slots: WORKER_SLOTS,
        ..final_state::read_final_state(&client).await
    };
    end.send_replace(Some(history.all_event_ids().last().copied().unwrap_or(0)));
    history.reader_logs = vec![readers.stream_reader.finish().await, readers.poll_reader.finish().await];
    history.routes = expected_routes()
        .map(|(event_type, handlers)| (event_type.into(), handlers.iter().map(ToString::to_string).collect()))
        .into();
    history.emit_requests = producers.emit_requests.lock().unwrap().clone();
    let emits_echo = |entry: &&FinalJournalEntry| entry.event.event_type == "record.published";
    let echoes: Vec<EmitRequest> =
        history.journal_entries.iter().filter(emits_echo).map(emit_request_of_echo).collect();
    history.emit_requests.extend(echoes);
    history.deliveries = target.deliveries();
    history.deliveries.extend(recording_handlers::read_noted_deliveries(&pointsman.file_path("notes")));
    assert_no_violations(&history, &pointsman);
}

/// Returns the emit request that corresponds to the event which the handler `mirror` emits for an event.
fn emit_request_of_echo(entry: &FinalJournalEntry) -> EmitRequest {
    EmitRequest {
        events: vec![recording_handlers::echo_event(entry.id)],
        newest_acknowledged_id_before: entry.id,
        acknowledged_events: None,
        emitted_by_handler: true,
    }
}

/// Starts a server and passes its client to producers and readers.
fn start_and_share_client(
    pointsman: &mut ServerFixture,
    server: &watch::Sender<Option<Client>>,
) -> PointsmanServerProcess {
    let node = tokio::task::block_in_place(|| pointsman.serve_on_new_port());
    let url = format!("http://{}", pointsman.address());
    server.send_replace(Some(Client::new(&url, Some(pointsman.token())).unwrap()));
    node
}

/// Waits until this many more requests have been acknowledged.
async fn wait_for_acknowledgements(producers: &Producers, count: usize) {
    let mut acknowledged = producers.acknowledged_request_count.subscribe();
    let wanted = *acknowledged.borrow() + count;
    let reached = acknowledged.wait_for(|acknowledged| *acknowledged >= wanted);
    timeout(WAIT_TIMEOUT, reached).await.expect("the server acknowledges requests").unwrap();
}

struct RunningReaders {
    stream_reader: RunningReader,
    poll_reader: RunningReader,
}

struct RunningReader {
    reader: Arc<ReconnectingJournalReader>,
    spawned_future: JoinHandle<()>,
}

impl RunningReaders {
    fn start(server: &watch::Receiver<Option<Client>>, end: &watch::Receiver<Option<u64>>) -> Self {
        let reader = |name| Arc::new(ReconnectingJournalReader::new(name, server.clone(), end.clone()));
        let (stream, poll) = (reader("stream"), reader("poll"));
        let following = stream.clone();
        let polling = poll.clone();
        Self {
            stream_reader: RunningReader {
                reader: stream,
                spawned_future: tokio::spawn(async move { following.follow_stream().await }),
            },
            poll_reader: RunningReader {
                reader: poll,
                spawned_future: tokio::spawn(async move { polling.poll_until_end().await }),
            },
        }
    }
}

impl RunningReader {
    /// Waits until the reader has read the whole journal, and returns the ids that it received. If it does not end in
    /// time, ids are missing.
    async fn finish(self) -> history::ReaderLog {
        if let Ok(ended) = timeout(WAIT_TIMEOUT, self.spawned_future).await {
            ended.unwrap();
        }
        self.reader.log()
    }
}

/// Prints a summary of the run, and fails if a rule was broken.
fn assert_no_violations(history: &History, pointsman: &ServerFixture) {
    let log = pointsman.read_server_log();
    let requests = history.emit_requests.iter().filter(|emit| !emit.emitted_by_handler).count();
    let acknowledged = history.emit_requests.iter().filter(|emit| emit.acknowledged_events.is_some()).count();
    println!(
        "{} kills; {requests} requests, {acknowledged} acknowledged; {} events, {} tasks, {} deliveries",
        history.kill_count,
        history.journal_entries.len(),
        history.tasks.len(),
        history.deliveries.len()
    );
    let violations = history.find_violations();
    let tail: Vec<&str> = log.lines().rev().take(40).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    assert!(
        violations.is_empty(),
        "{} violations, first {:#?}\nthe log ends:\n{}",
        violations.len(),
        &violations[..violations.len().min(10)],
        tail.join("\n")
    );
    assert!(!log.contains("panicked"), "{log}");
    assert!(acknowledged > history.kill_count, "too few requests were acknowledged");
    assert!(requests - acknowledged <= history.kill_count * PRODUCER_COUNT, "requests failed without a kill");
}

use std::collections::HashMap;

use pointsman_engine::HandlerOutcome;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::chain_fixture::{StepGate, chain_setup, new_order, two_step_chain};
use crate::raw_http_client::{TEST_TIMEOUT, read_response};
use crate::test_server::{TestServer, in_process_handler_setup};

/// One server-sent event.
#[derive(Debug, Default)]
pub(crate) struct SseFrame {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl SseFrame {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).expect("JSON")
    }
}

/// A connection to an event stream.
pub(crate) struct SseClient(BufReader<TcpStream>);

impl SseClient {
    pub(crate) async fn connect(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        let head = server.request_head("GET", path, headers);
        stream.write_all(format!("{head}\r\n").as_bytes()).await.expect("written");
        let mut frames = Self(BufReader::new(stream));
        let status = frames.read_line().await.expect("a status line");
        assert!(status.contains(" 200 "), "{status}");
        while !frames.read_line().await.expect("headers").is_empty() {}
        frames
    }

    async fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(TEST_TIMEOUT, self.0.read_line(&mut line))
            .await
            .expect("a line in time")
            .expect("a line");
        (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Reads the next frame with data; `None` at the end.
    pub(crate) async fn next_frame(&mut self) -> Option<SseFrame> {
        let mut frame = SseFrame::default();
        loop {
            let line = self.read_line().await?;
            match line.split_once(": ") {
                Some(("id", id)) => frame.id = id.parse().ok(),
                Some(("event", event)) => frame.event = event.into(),
                Some(("data", data)) => frame.data.push_str(data),
                _ if line.is_empty() && !frame.data.is_empty() => return Some(frame),
                // Chunk sizes, comments.
                _ => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streamed_events_have_ids_after_which_a_stream_resumes() {
    let server = TestServer::start().await;
    let first = server
        .emit(
            r#"{"type":"a.b","key":"k","value":{
        "lines": "of\nmine" }}"#,
        )
        .await;
    let second = server.emit(r#"{"type":"b"}"#).await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream?after=0&tenant=default", &[]).await;
    let frame = frames.next_frame().await.unwrap();
    assert_eq!((frame.id, frame.event.as_str()), (Some(first), "a.b"));
    assert_eq!(frame.json()["value"]["lines"], "of\nmine");
    assert_eq!(frames.next_frame().await.unwrap().id, Some(second));
    let third = server.emit(r#"{"type":"c"}"#).await;
    assert_eq!(frames.next_frame().await.unwrap().id, Some(third));

    let resumed = [("last-event-id", &*first.to_string())];
    let mut frames = SseClient::connect(&server, "/api/v1/stream?after=0&tenant=default", &resumed).await;
    assert_eq!(frames.next_frame().await.unwrap().id, Some(second));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_a_cursor_starts_with_new_events() {
    let server = TestServer::start().await;
    server.emit(r#"{"type":"a"}"#).await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream", &[]).await;
    let next = server.emit(r#"{"type":"a"}"#).await;
    assert_eq!(frames.next_frame().await.unwrap().id, Some(next));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_gets_its_cursor_before_the_first_event() {
    let server = TestServer::start().await;
    let first = server.emit(r#"{"type":"a"}"#).await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream", &[]).await;
    let cursor = loop {
        if let Some(id) = frames.read_line().await.unwrap().strip_prefix("id: ") {
            break id.to_owned();
        }
    };
    assert_eq!(cursor, first.to_string());
    drop(frames);
    let missed = server.emit(r#"{"type":"a"}"#).await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream", &[("last-event-id", &cursor)]).await;
    assert_eq!(frames.next_frame().await.unwrap().id, Some(missed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_above_the_newest_event_is_torn() {
    let server = TestServer::start().await;
    let head = server.emit(r#"{"type":"a"}"#).await;
    let mut frames = SseClient::connect(&server, &format!("/api/v1/stream?after={}", head + 1), &[]).await;
    let frame = frames.next_frame().await.unwrap();
    assert_eq!((frame.event.as_str(), frame.id), ("Torn", None));
    assert_eq!(frame.json(), serde_json::json!({"TYPE": "Torn", "eventId": head}));
    assert!(frames.next_frame().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn task_changes_are_sent_after_their_event_and_without_an_id() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream?after=0&key=k", &[]).await;
    server.emit(r#"{"type":"job","key":"other"}"#).await;
    let id = server.emit(r#"{"type":"job","key":"k"}"#).await;
    let event = frames.next_frame().await.unwrap();
    assert_eq!(event.id, Some(id));
    loop {
        let change = frames.next_frame().await.unwrap();
        assert_eq!((change.event.as_str(), change.id), ("task", None));
        let change = change.json();
        assert_eq!((&change["event_id"], &change["key"]), (&Value::from(id), &"k".into()));
        if change["state"] == "done" {
            assert_eq!(change["status"], "SUCCESS");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_selected_event_types_has_no_task_changes() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream?after=0&return=job", &[]).await;
    let first = server.emit(r#"{"type":"job"}"#).await;
    let detail = format!("/api/v1/events/{first}");
    server.wait_until_get_returns(&detail, |event| event["tasks"][0]["status"] == "SUCCESS").await;
    let second = server.emit(r#"{"type":"job"}"#).await;
    assert_eq!(frames.next_frame().await.unwrap().id, Some(first));
    assert_eq!(frames.next_frame().await.unwrap().id, Some(second));
}

/// Reads frames until an order was removed and `done` of its tasks have succeeded. Returns the events with their ids,
/// and the task changes, of which the last may arrive after the order was removed.
async fn read_frames_until_order_ends(
    frames: &mut SseClient,
    done: usize,
) -> (Vec<(u64, String)>, Vec<Value>) {
    let (mut events, mut changes) = (Vec::new(), Vec::new());
    loop {
        let frame = frames.next_frame().await.expect("a frame");
        match frame.id {
            None => changes.push(frame.json()),
            Some(id) => events.push((id, frame.event)),
        }
        let succeeded = changes.iter().filter(|change: &&Value| change["status"] == "SUCCESS").count();
        if events.last().is_some_and(|(_, kind)| kind == "FileBasedRemoved") && succeeded >= done {
            return (events, changes);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_by_path_has_the_events_and_task_changes_of_its_orders() {
    let gate = StepGate::new_closed();
    let server = TestServer::start_with_config(
        "",
        chain_setup(&gate, vec![two_step_chain("/a/x"), two_step_chain("/z")]),
    )
    .await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream?path=/a/", &[]).await;
    server.add_order_to_engine(new_order("/z,1")).await;
    server.add_order_to_engine(new_order("/a/x,1")).await;
    gate.let_steps_finish(4);
    let (events, changes) = read_frames_until_order_ends(&mut frames, 2).await;
    assert!(events.is_sorted_by(|a, b| a.0 < b.0), "{events:?}");
    assert_eq!(events.iter().filter(|(_, kind)| kind == "OrderStepStarted").count(), 2);
    for change in &changes {
        assert_eq!((&change["key"], &change["handler"]), (&"/a/x,1".into(), &"work".into()), "{change}");
        assert!(change["event_id"].is_null() && ["a", "b"].contains(&change["collection"].as_str().unwrap()));
    }

    let (third, _) = &events[2];
    let resumed = [("last-event-id", &*third.to_string())];
    let mut frames = SseClient::connect(&server, "/api/v1/stream?path=/a/", &resumed).await;
    assert_eq!(read_frames_until_order_ends(&mut frames, 0).await.0, events[3..]);
    let only = "/api/v1/stream?after=0&return=OrderEvent&path=/a/x,1";
    let mut frames = SseClient::connect(&server, only, &[]).await;
    for (id, kind) in events.iter().filter(|(_, kind)| kind.starts_with("Order")) {
        let frame = frames.next_frame().await.unwrap();
        assert_eq!((frame.id, &frame.event, &frame.json()["key"]), (Some(*id), kind, &"/a/x,1".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_the_server_ends_streams() {
    let server = TestServer::start().await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream?return=a", &[]).await;
    server.inner.stop().await;
    assert!(frames.next_frame().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stop_event_is_sent_before_streams_end() {
    let server = TestServer::start().await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream?return=SchedulerEvent", &[]).await;
    let start = server.get("/api/v1/events?limit=-1&return=SchedulerEvent").await.json();
    let after = start["eventSnapshots"][0]["eventId"].as_u64().expect("an id");
    let poll = server.request_head(
        "GET",
        &format!("/api/v1/events?return=SchedulerEvent&after={after}&timeout=1h"),
        &[],
    );
    let mut waiting = TcpStream::connect(server.address).await.expect("a connection");
    waiting.write_all(format!("{poll}\r\n").as_bytes()).await.expect("written");
    // The poll has been accepted once a later connection has been answered.
    server.get("/healthz").await;
    server.inner.stop().await;
    let frame = frames.next_frame().await.expect("a frame");
    assert_eq!((frame.event.as_str(), &frame.json()["state"]), ("SchedulerStateChanged", &"stopping".into()));
    assert!(frames.next_frame().await.is_none());
    let response = read_response(&mut waiting).await.json();
    assert_eq!(response["eventSnapshots"][0]["state"], "stopping", "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_reported_done_after_its_journal_events() {
    const ORDER_COUNT: usize = 150;
    let server =
        TestServer::start_with_config("", chain_setup(&StepGate::new_open(), vec![two_step_chain("/a/x")]))
            .await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream?path=/a/", &[]).await;
    let adding = async {
        for number in 0..ORDER_COUNT {
            server.add_order_to_engine(new_order(&format!("/a/x,{number}"))).await;
        }
    };
    let following = async {
        // For each order, the number of steps that have ended according to the journal, and according to task changes.
        let mut ends: HashMap<String, (usize, usize)> = HashMap::new();
        let mut removed = 0;
        while removed < ORDER_COUNT {
            let frame = frames.next_frame().await.expect("a frame");
            let json = frame.json();
            let (journaled, done) = ends.entry(json["key"].as_str().unwrap_or_default().into()).or_default();
            match frame.event.as_str() {
                "OrderStepEnded" => *journaled += 1,
                "FileBasedRemoved" => removed += 1,
                "task" if json["status"] == "SUCCESS" => {
                    *done += 1;
                    assert!(*done <= *journaled, "{json}");
                }
                _ => {}
            }
        }
    };
    tokio::join!(adding, following);
}

#[tokio::test(flavor = "multi_thread")]
async fn task_changes_are_sent_while_the_journal_keeps_growing() {
    let server =
        TestServer::start_with_config("", in_process_handler_setup("job", |_| HandlerOutcome::succeeded()))
            .await;
    let mut frames = SseClient::connect(&server, "/api/v1/stream?tenant=default", &[]).await;
    let busy = async {
        loop {
            server.emit(r#"{"type":"noise"}"#).await;
        }
    };
    let following = async {
        let job = server.emit(r#"{"type":"job"}"#).await;
        let mut events = 0;
        loop {
            let frame = frames.next_frame().await.expect("a frame");
            if frame.event == "task" && frame.json()["event_id"] == job {
                return;
            }
            events += 1;
            assert!(events < 2000, "the task change was not sent");
        }
    };
    let busier = async {
        tokio::join!(busy, async {
            loop {
                server.emit(r#"{"type":"noise"}"#).await;
            }
        })
    };
    tokio::select! {
        () = following => {}
        _ = busier => unreachable!("the emits never end"),
    }
}

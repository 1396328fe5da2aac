use std::time::Duration;

use futures::StreamExt;
use pointsman::{EmitError, EventId, WatchError};
use pointsman_core::task::TaskState;

use super::*;

#[derive(Event, Serialize, Deserialize)]
#[event(type = "note", key = self.key.as_str(), priority = 500)]
struct Note {
    key: String,
}

#[tokio::test]
async fn events_of_one_object_name_their_predecessor() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url()).start().await.unwrap();
    let one = bus.emit(RecordPublished::new(1)).await.unwrap();
    let other = bus.emit(RecordPublished::new(2)).await.unwrap();
    let both = bus.emit_all([RecordPublished::new(1), RecordPublished::new(1)]).await.unwrap();
    assert_eq!((one.prev, other.prev), (None, None));
    assert_eq!((both[0].prev, both[1].prev), (Some(one.id), Some(both[0].id)));
    assert!(one.id < other.id && other.id < both[0].id && both[0].id < both[1].id);
    assert!(bus.emit_all(Vec::<RecordPublished>::new()).await.unwrap().is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn repeated_idempotency_key_returns_the_first_result_and_rejects_other_content() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url()).start().await.unwrap();
    let options_with_key = || EmitOptions::new().idempotency_key("import-7").delay(Duration::from_secs(3600));
    let first = bus.emit_with(RecordPublished::new(1), options_with_key()).await.unwrap();
    let repeat = bus.emit_with(RecordPublished::new(1), options_with_key()).await.unwrap();
    assert!(!first.is_repeat && repeat.is_repeat);
    assert_eq!((first.id, &first.tasks), (repeat.id, &repeat.tasks));

    for other in [
        bus.emit_with(RecordPublished::new(2), options_with_key()).await,
        bus.emit_with(RecordPublished::new(1), options_with_key().priority(7)).await,
        bus.emit_with(RecordPublished::new(1), options_with_key().delay(Duration::ZERO)).await,
    ] {
        let error = other.unwrap_err();
        assert!(matches!(&error, EmitError::EmitFailed(_)), "{error}");
        assert!(error.to_string().contains("import-7"), "{error}");
    }
    let other_tenant =
        bus.emit_with(RecordPublished::new(1), options_with_key().tenant("other")).await.unwrap();
    assert!(!other_tenant.is_repeat);
    assert_eq!(read_emitted_events(&bus).await.len(), 2);
    bus.stop().await;
}

#[tokio::test]
async fn delayed_event_is_journaled_now_and_handled_later() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("h", |_: RecordPublished| async {})
        .on::<RecordPublished>("h")
        .start()
        .await
        .unwrap();
    let delay = Duration::from_secs(3600);
    let emitted = bus.emit_with(RecordPublished::new(1), EmitOptions::new().delay(delay)).await.unwrap();
    assert_eq!(read_emitted_events(&bus).await.len(), 1);
    let task = bus.read_task(&emitted.tasks[0]).await.unwrap().unwrap();
    let TaskState::New { due } = task.lifecycle.state else { panic!("{:?}", task.lifecycle) };
    assert!(due.duration_since(task.created_at) >= delay - Duration::from_secs(60));
    assert_eq!(task.lifecycle.attempt, 0);
    bus.stop().await;
}

#[tokio::test]
async fn options_override_the_priority_of_the_event_type() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("h", |_: RawEvent| async {})
        .on_event_type("record", "h")
        .on::<Note>("h")
        .start()
        .await
        .unwrap();
    let priority_of =
        async |emitted: EmittedEvent| wait_until_only_task_finished(&bus, &emitted).await.priority.get();
    let note = || Note { key: "n".into() };
    assert_eq!(priority_of(bus.emit(note()).await.unwrap()).await, 500);
    assert_eq!(priority_of(bus.emit_with(note(), EmitOptions::new().priority(9)).await.unwrap()).await, 9);
    assert_eq!(priority_of(bus.emit(RecordPublished::new(1)).await.unwrap()).await, 100);
    bus.stop().await;
}

#[tokio::test]
async fn invalid_events_are_rejected_and_not_stored() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url()).start().await.unwrap();
    let note = |key: &str| Note { key: key.into() };
    for (event, options) in [
        (note(""), EmitOptions::new()),
        (note("a\r\nb"), EmitOptions::new()),
        (note(&"x".repeat(513)), EmitOptions::new()),
        (note("n"), EmitOptions::new().priority(0)),
        (note("n"), EmitOptions::new().priority(9001)),
        (note("n"), EmitOptions::new().tenant("a b")),
        (note("n"), EmitOptions::new().idempotency_key("")),
        (note("n"), EmitOptions::new().context(RequestContext::new().with_entry("a", "x".repeat(5000)))),
        (note("n"), EmitOptions::new().context(RequestContext::new().with_entry("a", "\0"))),
    ] {
        let error = bus.emit_with(event, options.clone()).await.unwrap_err();
        assert!(matches!(error, EmitError::InvalidEvent(_)), "{options:?}: {error}");
    }
    let reserved = bus.emit(ReservedTypeEvent {}).await.unwrap_err();
    assert!(reserved.to_string().contains("task is the name of a frame of the event stream"), "{reserved}");
    let long = RecordPublished { id: 1, title: "x".repeat(2 << 20) };
    assert!(matches!(bus.emit(long).await, Err(EmitError::InvalidEvent(_))));
    assert!(read_emitted_events(&bus).await.is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn watch_returns_every_event_once_and_in_order() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url()).start().await.unwrap();
    bus.emit(RecordPublished::new(0)).await.unwrap();
    let stream = bus.watch().await.unwrap().into_stream();
    let producer = bus.clone();
    let producer_task = tokio::spawn(async move {
        let mut ids = Vec::new();
        for id in 0..500 {
            ids.push(producer.emit(RecordPublished::new(id % 7)).await.unwrap().id);
        }
        ids
    });
    let received: Vec<EventId> =
        with_timeout(stream.take(500).map(|event| event.unwrap().id).collect()).await;
    assert_eq!(received, producer_task.await.unwrap());
    bus.stop().await;
}

#[tokio::test]
async fn watch_after_an_unassigned_id_is_torn() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url()).start().await.unwrap();
    bus.emit(RecordPublished::new(0)).await.unwrap();
    let mut watch = bus.watch_after(EventId::MAX, pointsman::EventFilter::default());
    let torn = with_timeout(watch.next()).await.unwrap_err();
    assert!(matches!(torn, WatchError::Torn(EventId::MAX)), "{torn}");
    bus.stop().await;
}

#[tokio::test]
async fn watch_returns_an_error_when_the_bus_stops() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url()).start().await.unwrap();
    let mut watch = bus.watch().await.unwrap();
    let watch_task = tokio::spawn(async move {
        loop {
            // Before it stops, the engine publishes that it is stopping.
            match watch.next().await {
                Ok(event) => assert!(event.is_engine_event()),
                Err(error) => return error,
            }
        }
    });
    tokio::task::yield_now().await;
    bus.stop().await;
    assert!(matches!(with_timeout(watch_task).await.unwrap(), WatchError::Store(_)));
}

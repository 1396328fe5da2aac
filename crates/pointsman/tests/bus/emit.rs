use std::time::Duration;

use futures::StreamExt;
use pointsman::{EmitError, EventId, WatchError};
use pointsman_core::task::State as TaskState;

use super::*;

#[derive(Event, Serialize, Deserialize)]
#[event(type = "note", key = self.key.as_str(), priority = 500)]
struct Note {
    key: String,
}

#[tokio::test]
async fn events_of_one_object_are_chained() {
    let home = Home::new();
    let bus = Bus::builder(&home.url()).start().await.unwrap();
    let one = bus.emit(Published::new(1)).await.unwrap();
    let other = bus.emit(Published::new(2)).await.unwrap();
    let both = bus.emit_all([Published::new(1), Published::new(1)]).await.unwrap();
    assert_eq!((one.prev, other.prev), (None, None));
    assert_eq!((both[0].prev, both[1].prev), (Some(one.id), Some(both[0].id)));
    assert!(one.id < other.id && other.id < both[0].id && both[0].id < both[1].id);
    assert!(bus.emit_all(Vec::<Published>::new()).await.unwrap().is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_and_other_content_a_refusal() {
    let home = Home::new();
    let bus = Bus::builder(&home.url()).start().await.unwrap();
    let once = || Emit::new().idempotency_key("import-7").delay(Duration::from_secs(3600));
    let first = bus.emit_with(Published::new(1), once()).await.unwrap();
    let again = bus.emit_with(Published::new(1), once()).await.unwrap();
    assert!(!first.repeated && again.repeated);
    assert_eq!((first.id, &first.tasks), (again.id, &again.tasks));

    for other in [
        bus.emit_with(Published::new(2), once()).await,
        bus.emit_with(Published::new(1), once().priority(7)).await,
        bus.emit_with(Published::new(1), once().delay(Duration::ZERO)).await,
    ] {
        let fault = other.unwrap_err();
        assert!(matches!(&fault, EmitError::NotJournaled(_)), "{fault}");
        assert!(fault.to_string().contains("import-7"), "{fault}");
    }
    let elsewhere = bus.emit_with(Published::new(1), once().tenant("other")).await.unwrap();
    assert!(!elsewhere.repeated);
    assert_eq!(journal(&bus).await.len(), 2);
    bus.stop().await;
}

#[tokio::test]
async fn a_delayed_event_is_journaled_now_and_handled_later() {
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("h", |_: Published| async {})
        .on::<Published>("h")
        .start()
        .await
        .unwrap();
    let delay = Duration::from_secs(3600);
    let emitted = bus.emit_with(Published::new(1), Emit::new().delay(delay)).await.unwrap();
    assert_eq!(journal(&bus).await.len(), 1);
    let task = bus.task(&emitted.tasks[0]).await.unwrap().unwrap();
    let TaskState::New { due } = task.life.state else { panic!("{:?}", task.life) };
    assert!(due.since(task.created_at) >= delay - Duration::from_secs(60));
    assert_eq!(task.life.attempt, 0);
    bus.stop().await;
}

#[tokio::test]
async fn urgency_is_the_events_own_unless_said_otherwise() {
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("h", |_: Raw| async {})
        .on_key("record", "h")
        .on::<Note>("h")
        .start()
        .await
        .unwrap();
    let urgency = async |emitted: Emitted| only_task(&bus, &emitted).await.priority.get();
    let note = || Note { key: "n".into() };
    assert_eq!(urgency(bus.emit(note()).await.unwrap()).await, 500);
    assert_eq!(urgency(bus.emit_with(note(), Emit::new().priority(9)).await.unwrap()).await, 9);
    assert_eq!(urgency(bus.emit(Published::new(1)).await.unwrap()).await, 100);
    bus.stop().await;
}

#[tokio::test]
async fn what_no_store_could_hold_is_refused_and_not_stored() {
    let home = Home::new();
    let bus = Bus::builder(&home.url()).start().await.unwrap();
    let note = |key: &str| Note { key: key.into() };
    for (event, how) in [
        (note(""), Emit::new()),
        (note("a\r\nb"), Emit::new()),
        (note(&"x".repeat(513)), Emit::new()),
        (note("n"), Emit::new().priority(0)),
        (note("n"), Emit::new().priority(9001)),
        (note("n"), Emit::new().tenant("a b")),
        (note("n"), Emit::new().idempotency_key("")),
        (note("n"), Emit::new().context(RequestContext::new().with("a", "x".repeat(5000)))),
        (note("n"), Emit::new().context(RequestContext::new().with("a", "\0"))),
    ] {
        let fault = bus.emit_with(event, how.clone()).await.unwrap_err();
        assert!(matches!(fault, EmitError::Event(_)), "{how:?}: {fault}");
    }
    let reserved = bus.emit(NamedLikeAFrame {}).await.unwrap_err();
    assert!(reserved.to_string().contains("task is the name of a frame of the event stream"), "{reserved}");
    let long = Published { id: 1, title: "x".repeat(2 << 20) };
    assert!(matches!(bus.emit(long).await, Err(EmitError::Event(_))));
    assert!(journal(&bus).await.is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn a_watch_sees_every_event_once_and_in_order() {
    let home = Home::new();
    let bus = Bus::builder(&home.url()).start().await.unwrap();
    bus.emit(Published::new(0)).await.unwrap();
    let stream = bus.watch().await.unwrap().into_stream();
    let producer = bus.clone();
    let emitting = tokio::spawn(async move {
        let mut ids = Vec::new();
        for id in 0..500 {
            ids.push(producer.emit(Published::new(id % 7)).await.unwrap().id);
        }
        ids
    });
    let seen: Vec<EventId> = within(stream.take(500).map(|event| event.unwrap().id).collect()).await;
    assert_eq!(seen, emitting.await.unwrap());
    bus.stop().await;
}

#[tokio::test]
async fn a_watch_from_an_id_that_was_never_given_out_is_torn() {
    let home = Home::new();
    let bus = Bus::builder(&home.url()).start().await.unwrap();
    bus.emit(Published::new(0)).await.unwrap();
    let mut watch = bus.watch_after(EventId::MAX, pointsman::Filter::default());
    assert_eq!(within(watch.next()).await.unwrap_err(), WatchError::Torn(EventId::MAX));
    bus.stop().await;
}

#[tokio::test]
async fn who_watches_is_told_when_the_bus_stops() {
    let home = Home::new();
    let bus = Bus::builder(&home.url()).start().await.unwrap();
    let mut watch = bus.watch().await.unwrap();
    let waiting = tokio::spawn(async move {
        loop {
            // The engine tells that it stops before it has.
            match watch.next().await {
                Ok(told) => assert!(told.is_engine()),
                Err(fault) => return fault,
            }
        }
    });
    tokio::task::yield_now().await;
    bus.stop().await;
    assert!(matches!(within(waiting).await.unwrap(), WatchError::Store(_)));
}

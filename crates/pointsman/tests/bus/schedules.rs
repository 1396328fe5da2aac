use pointsman::fire::FireOutcome;
use pointsman::{RunScheduleError, ScheduleRunResult, StartError};

use super::*;

#[tokio::test]
async fn schedule_emits_its_event_at_planned_times() {
    let (probe, mut received) = HandlerProbe::<u64>::new();
    let bus = Bus::builder("sqlite::memory:")
        .state(probe)
        .schedule("every_second", "* * * * * ?", RecordPublished::new(7))
        .handler("h", |event: RecordPublished, State(probe): State<HandlerProbe<u64>>| async move {
            probe.send(event.id);
        })
        .on::<RecordPublished>("h")
        .start()
        .await
        .unwrap();
    assert_eq!(receive_probed_value(&mut received).await, 7);
    let fires = bus.list_fires(&"every_second".parse().unwrap(), None, 10).await.unwrap().fires;
    assert!(fires.iter().all(|fire| fire.outcome != FireOutcome::CaughtUp) && !fires.is_empty(), "{fires:?}");
    bus.stop().await;
}

#[tokio::test]
async fn schedule_runs_on_request_and_an_unknown_one_is_refused() {
    let bus = Bus::builder("sqlite::memory:")
        .schedule("yearly", "0 0 1 1 *", RecordPublished::new(1))
        .start()
        .await
        .unwrap();
    let ScheduleRunResult::Event(event) = bus.run_schedule("yearly").await.unwrap() else {
        panic!("it emits an event");
    };
    assert_eq!(read_emitted_events(&bus).await[0].id, event);
    let error = bus.run_schedule("yearli").await.unwrap_err();
    assert!(matches!(error, RunScheduleError::UnknownSchedule { .. }));
    assert!(error.to_string().ends_with("before the start"), "{error}");
    bus.stop().await;
}

#[tokio::test]
async fn invalid_schedules_are_rejected_at_the_start() {
    let start = async |name: &str, cron: &str| {
        let builder = Bus::builder("sqlite::memory:").handler("h", |_: RawEvent| async {});
        builder.schedule(name, cron, RecordPublished::new(1)).start().await.unwrap_err()
    };
    assert!(matches!(start("nightly", "61 * * * *").await, StartError::InvalidCron { .. }));
    assert!(matches!(start("a b", "* * * * *").await, StartError::InvalidName(_)));
    assert!(matches!(start("h", "* * * * *").await, StartError::DuplicateSchedule(_)));
    let reserved = Bus::builder("sqlite::memory:").schedule("s", "* * * * *", ReservedTypeEvent {});
    assert!(matches!(reserved.start().await, Err(StartError::InvalidEvent(_))));
}

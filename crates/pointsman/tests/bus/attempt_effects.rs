use std::time::Duration;

use pointsman::{Backoff, CtxError, LogLevel, RetryPolicy};
use pointsman_core::event::MAX_CAUSE_DEPTH;

use super::*;

#[tokio::test]
async fn events_emitted_by_a_handler_name_their_cause_and_keep_the_trace() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("index", |event: RecordPublished, ctx: Ctx| async move {
            ctx.emit(RecordIndexed { id: event.id })
        })
        .on::<RecordPublished>("index")
        .start()
        .await
        .unwrap();
    let request = RequestContext::new().request_id("r-1").ip("192.0.2.1".parse().unwrap());
    let options = EmitOptions::new().context(request).tenant("shop");
    let emitted = bus.emit_with(RecordPublished::new(1), options).await.unwrap();
    wait_until_only_task_finished(&bus, &emitted).await;

    let events = read_emitted_events(&bus).await;
    let indexed = events.iter().find(|event| event.is::<RecordIndexed>()).unwrap();
    assert_eq!(indexed.parse_value::<RecordIndexed>().unwrap(), RecordIndexed { id: 1 });
    assert_eq!(indexed.cause.unwrap().event, Some(emitted.id));
    assert_eq!(indexed.prev, Some(emitted.id), "both events are about the same object");
    assert_eq!(indexed.tenant.as_str(), "shop");
    assert_eq!(indexed.context.iter().collect::<Vec<_>>(), [(&"request_id".to_owned(), &"r-1".to_owned())]);
    bus.stop().await;
}

#[tokio::test]
async fn a_failed_attempt_emits_nothing() {
    let folder = SqliteStoreFolder::new();
    let retries_without_delay = RetryPolicy {
        max_retries: 2,
        backoff: Backoff::Fixed,
        delay: Duration::ZERO,
        max_delay: Duration::ZERO,
    };
    let bus = Bus::builder(&folder.url())
        .handler("index", |event: RecordPublished, ctx: Ctx| async move {
            ctx.emit(RecordIndexed { id: event.id })?;
            match ctx.attempt() {
                1 | 2 => Err(HandlerError::new("after the emit")),
                _ => Ok(()),
            }
        })
        .retry_policy(retries_without_delay)
        .on::<RecordPublished>("index")
        .start()
        .await
        .unwrap();
    let task = emit_and_wait_for_task(&bus, RecordPublished::new(1)).await;
    assert_eq!(task.attempts.len(), 3);
    let events = read_emitted_events(&bus).await;
    assert_eq!(events.iter().filter(|event| event.is::<RecordIndexed>()).count(), 1);
    bus.stop().await;
}

#[tokio::test]
async fn log_lines_of_the_context_keep_their_order() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("index", |ctx: Ctx| async move {
            ctx.log("started");
            ctx.log_error("failed");
            ctx.log("ended");
        })
        .on::<RecordPublished>("index")
        .start()
        .await
        .unwrap();
    let task = emit_and_wait_for_task(&bus, RecordPublished::new(1)).await;
    let lines: Vec<_> = bus
        .read_task_logs(&task.id)
        .await
        .unwrap()
        .into_iter()
        .map(|line| (line.level, line.message))
        .collect();
    let expected = [(LogLevel::Info, "started"), (LogLevel::Error, "failed"), (LogLevel::Info, "ended")];
    assert_eq!(lines, expected.map(|(level, text)| (level, text.to_owned())));
    bus.stop().await;
}

#[tokio::test]
async fn context_rejects_events_after_the_attempt_has_ended() {
    let folder = SqliteStoreFolder::new();
    let (probe, mut received) = HandlerProbe::<Ctx>::new();
    let bus = Bus::builder(&folder.url())
        .state(probe)
        .handler("leak", |ctx: Ctx, State(probe): State<HandlerProbe<Ctx>>| async move { probe.send(ctx) })
        .on::<RecordPublished>("leak")
        .start()
        .await
        .unwrap();
    emit_and_wait_for_task(&bus, RecordPublished::new(1)).await;
    let ctx = receive_probed_value(&mut received).await;
    assert_eq!(ctx.emit(RecordIndexed { id: 1 }), Err(CtxError::AttemptEnded));
    assert_eq!(read_emitted_events(&bus).await.len(), 1);
    bus.stop().await;
}

#[tokio::test]
async fn idempotency_key_is_rejected_inside_an_attempt() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("index", |ctx: Ctx| async move {
            ctx.emit_with(RecordIndexed { id: 1 }, EmitOptions::new().idempotency_key("k"))
                .map_err(HandlerError::permanent)
        })
        .on::<RecordPublished>("index")
        .start()
        .await
        .unwrap();
    let task = emit_and_wait_for_task(&bus, RecordPublished::new(1)).await;
    assert!(task.error.unwrap().contains("idempotency key"));
    bus.stop().await;
}

#[tokio::test]
async fn events_emitted_through_the_bus_name_their_cause() {
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("index", |event: RecordPublished, bus: Bus| async move {
            let id = event.id;
            bus.emit(RecordIndexed { id }).await?;
            let mut uow = bus.unit_of_work();
            uow.emit(RecordIndexed { id })?;
            uow.before_commit(move |tx| Ok(tx.emit(RecordIndexed { id })?));
            uow.commit().await?;
            Ok::<_, HandlerError>(())
        })
        .on::<RecordPublished>("index")
        .start()
        .await
        .unwrap();
    let emitted = bus.emit(RecordPublished::new(1)).await.unwrap();
    assert_eq!(wait_until_only_task_finished(&bus, &emitted).await.error, None);
    let events = read_emitted_events(&bus).await;
    assert_eq!(events.len(), 4);
    assert!(events[0].cause.is_none());
    assert!(
        events[1..]
            .iter()
            .all(|event| event.cause_depth() == 1 && event.cause.unwrap().event == Some(emitted.id))
    );
    bus.stop().await;
}

#[tokio::test]
async fn event_storm_is_stopped_whether_emitted_by_context_or_bus() {
    async fn emit_by_context(event: RecordPublished, ctx: Ctx) -> Result<(), HandlerError> {
        Ok(ctx.emit(event)?)
    }
    async fn emit_by_bus(event: RecordIndexed, bus: Bus) -> Result<(), HandlerError> {
        bus.emit(event).await.map(|_| ()).map_err(HandlerError::permanent)
    }
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("by_context", emit_by_context)
        .handler("by_bus", emit_by_bus)
        .on::<RecordPublished>("by_context")
        .on::<RecordIndexed>("by_bus")
        .start()
        .await
        .unwrap();
    let mut watch = bus.watch().await.unwrap();
    bus.emit(RecordPublished::new(1)).await.unwrap();
    bus.emit(RecordIndexed { id: 2 }).await.unwrap();
    let mut depths = Vec::new();
    let event_count = 2 * (usize::from(MAX_CAUSE_DEPTH) + 1);
    while depths.len() < event_count {
        let received = with_timeout(watch.next()).await.unwrap();
        // The engine publishes the failure at the end of each storm.
        if !received.is_engine_event() {
            depths.push(received.cause_depth());
        }
    }
    assert_eq!(depths.iter().filter(|depth| **depth == MAX_CAUSE_DEPTH).count(), 2);

    let failed = TaskFilter { statuses: vec![TaskStatus::Error], ..TaskFilter::default() };
    let wait_until_both_failed = async {
        while bus.list_tasks(failed.clone(), None, 10).await.unwrap().tasks.len() < 2 {
            tokio::task::yield_now().await
        }
    };
    with_timeout(wait_until_both_failed).await;
    assert_eq!(read_emitted_events(&bus).await.len(), event_count);
    bus.stop().await;
}

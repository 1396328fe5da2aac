use std::time::Duration;

use pointsman::{Backoff, CtxError, Level, RetryPolicy};
use pointsman_core::event::MAX_DEPTH;
use pointsman_core::store::TaskFilter;

use super::*;

#[tokio::test]
async fn what_a_handler_emits_names_its_cause_and_keeps_the_trace() {
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("index", |event: Published, ctx: Ctx| async move { ctx.emit(Indexed { id: event.id }) })
        .on::<Published>("index")
        .start()
        .await
        .unwrap();
    let request = RequestContext::new().request_id("r-1").ip("192.0.2.1".parse().unwrap());
    let how = Emit::new().context(request).tenant("shop");
    let emitted = bus.emit_with(Published::new(1), how).await.unwrap();
    only_task(&bus, &emitted).await;

    let events = journal(&bus).await;
    let indexed = events.iter().find(|event| event.is::<Indexed>()).unwrap();
    assert_eq!(indexed.to::<Indexed>().unwrap(), Indexed { id: 1 });
    assert_eq!(indexed.cause.unwrap().event, Some(emitted.id));
    assert_eq!(indexed.prev, Some(emitted.id), "it is about the same object");
    assert_eq!(indexed.tenant.as_str(), "shop");
    assert_eq!(indexed.context.iter().collect::<Vec<_>>(), [(&"request_id".to_owned(), &"r-1".to_owned())]);
    bus.stop().await;
}

#[tokio::test]
async fn an_attempt_that_fails_has_emitted_nothing() {
    let home = Home::new();
    let at_once =
        RetryPolicy { max: 2, backoff: Backoff::Fixed, delay: Duration::ZERO, max_delay: Duration::ZERO };
    let bus = Bus::builder(&home.url())
        .handler("index", |event: Published, ctx: Ctx| async move {
            ctx.emit(Indexed { id: event.id })?;
            match ctx.attempt() {
                1 | 2 => Err(HandlerError::new("after the emit")),
                _ => Ok(()),
            }
        })
        .retry(at_once)
        .on::<Published>("index")
        .start()
        .await
        .unwrap();
    let task = run_one(&bus, Published::new(1)).await;
    assert_eq!(task.attempts.len(), 3);
    let events = journal(&bus).await;
    assert_eq!(events.iter().filter(|event| event.is::<Indexed>()).count(), 1);
    bus.stop().await;
}

#[tokio::test]
async fn lines_of_the_context_stand_in_the_log_in_order() {
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("index", |ctx: Ctx| async move {
            ctx.log("begun");
            ctx.log_error("stumbled");
            ctx.log("ended");
        })
        .on::<Published>("index")
        .start()
        .await
        .unwrap();
    let task = run_one(&bus, Published::new(1)).await;
    let lines: Vec<_> =
        bus.logs(&task.id).await.unwrap().into_iter().map(|line| (line.level, line.message)).collect();
    let expected = [(Level::Info, "begun"), (Level::Error, "stumbled"), (Level::Info, "ended")];
    assert_eq!(lines, expected.map(|(level, text)| (level, text.to_owned())));
    bus.stop().await;
}

#[tokio::test]
async fn a_context_takes_nothing_after_the_end() {
    let home = Home::new();
    let (probe, mut seen) = Probe::<Ctx>::new();
    let bus = Bus::builder(&home.url())
        .state(probe)
        .handler("leak", |ctx: Ctx, State(probe): State<Probe<Ctx>>| async move { probe.saw(ctx) })
        .on::<Published>("leak")
        .start()
        .await
        .unwrap();
    run_one(&bus, Published::new(1)).await;
    let ctx = saw(&mut seen).await;
    assert_eq!(ctx.emit(Indexed { id: 1 }), Err(CtxError::AttemptEnded));
    assert_eq!(journal(&bus).await.len(), 1);
    bus.stop().await;
}

#[tokio::test]
async fn an_idempotency_key_has_no_place_in_an_attempt() {
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("index", |ctx: Ctx| async move {
            ctx.emit_with(Indexed { id: 1 }, Emit::new().idempotency_key("k"))
                .map_err(HandlerError::permanent)
        })
        .on::<Published>("index")
        .start()
        .await
        .unwrap();
    let task = run_one(&bus, Published::new(1)).await;
    assert!(task.error.unwrap().contains("idempotency key"));
    bus.stop().await;
}

#[tokio::test]
async fn a_handler_may_use_the_bus_and_its_events_name_their_cause() {
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("index", |event: Published, bus: Bus| async move {
            let id = event.id;
            bus.emit(Indexed { id }).await?;
            let mut uow = bus.unit_of_work();
            uow.emit(Indexed { id })?;
            uow.on_commit(move |tx| Ok(tx.emit(Indexed { id })?));
            uow.commit().await?;
            Ok::<_, HandlerError>(())
        })
        .on::<Published>("index")
        .start()
        .await
        .unwrap();
    let emitted = bus.emit(Published::new(1)).await.unwrap();
    assert_eq!(only_task(&bus, &emitted).await.error, None);
    let events = journal(&bus).await;
    assert_eq!(events.len(), 4);
    assert!(events[0].cause.is_none());
    assert!(
        events[1..].iter().all(|event| event.depth() == 1 && event.cause.unwrap().event == Some(emitted.id))
    );
    bus.stop().await;
}

#[tokio::test]
async fn an_event_that_causes_itself_is_stopped_whichever_way_it_is_emitted() {
    async fn by_context(event: Published, ctx: Ctx) -> Result<(), HandlerError> {
        Ok(ctx.emit(event)?)
    }
    async fn by_bus(event: Indexed, bus: Bus) -> Result<(), HandlerError> {
        bus.emit(event).await.map(|_| ()).map_err(HandlerError::permanent)
    }
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("by_context", by_context)
        .handler("by_bus", by_bus)
        .on::<Published>("by_context")
        .on::<Indexed>("by_bus")
        .start()
        .await
        .unwrap();
    let mut watch = bus.watch().await.unwrap();
    bus.emit(Published::new(1)).await.unwrap();
    bus.emit(Indexed { id: 2 }).await.unwrap();
    let mut depths = Vec::new();
    let storms = 2 * (usize::from(MAX_DEPTH) + 1);
    while depths.len() < storms {
        let seen = within(watch.next()).await.unwrap();
        // The engine tells of the failures at the end of each storm.
        if !seen.is_engine() {
            depths.push(seen.depth());
        }
    }
    assert_eq!(depths.iter().filter(|depth| **depth == MAX_DEPTH).count(), 2);

    let failed = TaskFilter { statuses: vec![Status::Error], ..TaskFilter::default() };
    let store = bus.engine().store();
    let both = async {
        while store.tasks(failed.clone(), None, 10).await.unwrap().tasks.len() < 2 {
            tokio::task::yield_now().await
        }
    };
    within(both).await;
    assert_eq!(journal(&bus).await.len(), storms);
    bus.stop().await;
}

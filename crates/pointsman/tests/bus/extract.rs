use pointsman::{Extract, LaneOrdering};

use super::*;

#[tokio::test]
async fn handler_arguments_are_extracted_from_the_attempt() {
    type Received = (RecordPublished, TaskInfo, RequestContext, RawEvent, &'static str);
    async fn handler(
        event: RecordPublished,
        ctx: Ctx,
        task: TaskInfo,
        request: RequestContext,
        raw: RawEvent,
        State(shared_text): State<&'static str>,
        State(probe): State<HandlerProbe<Received>>,
    ) {
        assert_eq!((ctx.attempt(), ctx.fence()), (task.attempt, task.fence));
        assert_eq!(
            (ctx.prev(), ctx.prev_sent(), ctx.is_out_of_order()),
            (task.prev, task.prev_sent, task.is_out_of_order)
        );
        probe.send((event, task, request, raw, shared_text));
    }
    let folder = SqliteStoreFolder::new();
    let (probe, mut received) = HandlerProbe::<Received>::new();
    let bus = Bus::builder(&folder.url())
        .state(probe)
        .state("shared")
        .handler("h", handler)
        .on::<RecordPublished>("h")
        .start()
        .await
        .unwrap();

    let request = RequestContext::new()
        .ip("2001:db8::1".parse().unwrap())
        .user_agent("curl/8")
        .referer("https://example.org/")
        .request_id("r-1")
        .traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let first = bus.emit(RecordPublished::new(1)).await.unwrap();
    let emitted =
        bus.emit_with(RecordPublished::new(1), EmitOptions::new().context(request.clone())).await.unwrap();

    receive_probed_value(&mut received).await;
    let (event, task, context, raw, shared_text) = receive_probed_value(&mut received).await;
    assert_eq!(event, RecordPublished::new(1));
    assert_eq!(context, request);
    assert_eq!(
        (task.event_id, task.prev, task.prev_sent),
        (Some(emitted.id), Some(first.id), Some(first.id))
    );
    assert_eq!((task.handler.as_str(), task.attempt, task.retries, task.is_out_of_order), ("h", 1, 0, false));
    assert_eq!(task.id, emitted.tasks[0]);
    assert_eq!(
        (raw.id, raw.event_type.as_str(), raw.key.as_ref().unwrap().as_str()),
        (emitted.id, "record.published", "record:1")
    );
    assert_eq!(shared_text, "shared");
    bus.stop().await;
}

#[tokio::test]
async fn handler_of_a_parent_type_gets_subtypes_and_each_event_once() {
    let folder = SqliteStoreFolder::new();
    let (probe, mut received) = HandlerProbe::<String>::new();
    let bus = Bus::builder(&folder.url())
        .state(probe)
        .handler("audit", |raw: RawEvent, State(probe): State<HandlerProbe<String>>| async move {
            probe.send(raw.event_type.to_string());
        })
        .lane_ordering(LaneOrdering::Key)
        .on_event_type("record", "audit")
        .on::<RecordPublished>("audit")
        .start()
        .await
        .unwrap();
    let published = bus.emit(RecordPublished::new(1)).await.unwrap();
    let indexed = bus.emit(RecordIndexed { id: 1 }).await.unwrap();
    assert_eq!((published.tasks.len(), indexed.tasks.len()), (1, 1));
    wait_until_only_task_finished(&bus, &indexed).await;
    assert_eq!(
        [receive_probed_value(&mut received).await, receive_probed_value(&mut received).await],
        ["record.published", "record.indexed"]
    );
    assert!(received.try_recv().is_err());
    bus.stop().await;
}

#[tokio::test]
async fn synchronous_handlers_run_first_and_in_order() {
    let folder = SqliteStoreFolder::new();
    let (probe, mut received) = HandlerProbe::<&'static str>::new();
    let report_name = |name: &'static str| {
        move |State(probe): State<HandlerProbe<&'static str>>| {
            probe.send(name);
            async {}
        }
    };
    let bus = Bus::builder(&folder.url())
        .state(probe)
        .handler("queued", report_name("queued"))
        .handler("first", report_name("first"))
        .handler("second", report_name("second"))
        .on_event_type("record", "queued")
        .on_sync::<RecordPublished>("first")
        .on_event_type_sync("record.published", "second")
        .start()
        .await
        .unwrap();
    for id in 0..20 {
        bus.emit(RecordPublished::new(id)).await.unwrap();
        assert_eq!(
            [
                receive_probed_value(&mut received).await,
                receive_probed_value(&mut received).await,
                receive_probed_value(&mut received).await
            ],
            ["first", "second", "queued"]
        );
    }
    bus.stop().await;
}

#[tokio::test]
async fn payload_of_another_type_fails_for_good_with_the_reason() {
    #[derive(Event, Serialize, Deserialize)]
    #[event(type = "record.published", key = "record:{id}")]
    struct OlderRecordPublished {
        id: u64,
    }
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("h", |_: RecordPublished| async {})
        .on::<RecordPublished>("h")
        .start()
        .await
        .unwrap();
    let task = emit_and_wait_for_task(&bus, OlderRecordPublished { id: 1 }).await;
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Error);
    assert_eq!(task.attempts.len(), 1);
    let error = task.error.unwrap();
    assert!(
        error.contains("record.published does not fit") && error.contains("missing field `title`"),
        "{error}"
    );
    bus.stop().await;
}

#[tokio::test]
async fn programs_can_define_extractors() {
    struct Actor(String);
    impl Extract for Actor {
        fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
            let actor = ctx.event().context.get("actor").cloned();
            actor.map(Actor).ok_or_else(|| HandlerError::permanent("no actor in the context"))
        }
    }
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("h", |actor: Actor| async move { Ok::<_, String>(actor.0) })
        .on::<RecordPublished>("h")
        .start()
        .await
        .unwrap();
    let by_ann = EmitOptions::new().context(RequestContext::new().with_entry("actor", "ann"));
    let emitted = bus.emit_with(RecordPublished::new(1), by_ann).await.unwrap();
    assert_eq!(wait_until_only_task_finished(&bus, &emitted).await.result.unwrap().as_str(), "\"ann\"");
    let task = emit_and_wait_for_task(&bus, RecordPublished::new(2)).await;
    assert_eq!((task.error.as_deref(), task.attempts.len()), (Some("no actor in the context"), 1));
    bus.stop().await;
}

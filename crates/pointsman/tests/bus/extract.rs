use pointsman::{Extract, Order};

use super::*;

#[tokio::test]
async fn a_handler_gets_what_its_arguments_name() {
    type Seen = (Published, TaskInfo, RequestContext, Raw, &'static str);
    async fn handler(
        event: Published,
        ctx: Ctx,
        task: TaskInfo,
        request: RequestContext,
        raw: Raw,
        State(word): State<&'static str>,
        State(probe): State<Probe<Seen>>,
    ) {
        assert_eq!((ctx.attempt(), ctx.fence()), (task.attempt, task.fence));
        assert_eq!((ctx.prev(), ctx.prev_sent(), ctx.late()), (task.prev, task.prev_sent, task.late));
        probe.saw((event, task, request, raw, word));
    }
    let home = Home::new();
    let (probe, mut seen) = Probe::<Seen>::new();
    let bus = Bus::builder(&home.url())
        .state(probe)
        .state("shared")
        .handler("h", handler)
        .on::<Published>("h")
        .start()
        .await
        .unwrap();

    let request = RequestContext::new()
        .ip("2001:db8::1".parse().unwrap())
        .user_agent("curl/8")
        .referer("https://example.org/")
        .request_id("r-1")
        .traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let first = bus.emit(Published::new(1)).await.unwrap();
    let emitted = bus.emit_with(Published::new(1), Emit::new().context(request.clone())).await.unwrap();

    saw(&mut seen).await;
    let (event, task, context, raw, word) = saw(&mut seen).await;
    assert_eq!(event, Published::new(1));
    assert_eq!(context, request);
    assert_eq!((task.event, task.prev, task.prev_sent), (Some(emitted.id), Some(first.id), Some(first.id)));
    assert_eq!((task.handler.as_str(), task.attempt, task.retries, task.late), ("h", 1, 0, false));
    assert_eq!(task.id, emitted.tasks[0]);
    assert_eq!(
        (raw.id, raw.kind.as_str(), raw.key.as_ref().unwrap().as_str()),
        (emitted.id, "record.published", "record:1")
    );
    assert_eq!(word, "shared");
    bus.stop().await;
}

#[tokio::test]
async fn a_handler_of_a_parent_gets_its_children_and_each_event_once() {
    let home = Home::new();
    let (probe, mut seen) = Probe::<String>::new();
    let bus = Bus::builder(&home.url())
        .state(probe)
        .handler("audit", |raw: Raw, State(probe): State<Probe<String>>| async move {
            probe.saw(raw.kind.to_string());
        })
        .order(Order::Key)
        .on_key("record", "audit")
        .on::<Published>("audit")
        .start()
        .await
        .unwrap();
    let published = bus.emit(Published::new(1)).await.unwrap();
    let indexed = bus.emit(Indexed { id: 1 }).await.unwrap();
    assert_eq!((published.tasks.len(), indexed.tasks.len()), (1, 1));
    only_task(&bus, &indexed).await;
    assert_eq!([saw(&mut seen).await, saw(&mut seen).await], ["record.published", "record.indexed"]);
    assert!(seen.try_recv().is_err());
    bus.stop().await;
}

#[tokio::test]
async fn synchronous_handlers_come_first_in_their_order() {
    let home = Home::new();
    let (probe, mut seen) = Probe::<&'static str>::new();
    let tell = |who: &'static str| {
        move |State(probe): State<Probe<&'static str>>| {
            probe.saw(who);
            async {}
        }
    };
    let bus = Bus::builder(&home.url())
        .state(probe)
        .handler("queued", tell("queued"))
        .handler("first", tell("first"))
        .handler("second", tell("second"))
        .on_key("record", "queued")
        .on_sync::<Published>("first")
        .on_key_sync("record.published", "second")
        .start()
        .await
        .unwrap();
    for id in 0..20 {
        bus.emit(Published::new(id)).await.unwrap();
        assert_eq!(
            [saw(&mut seen).await, saw(&mut seen).await, saw(&mut seen).await],
            ["first", "second", "queued"]
        );
    }
    bus.stop().await;
}

#[tokio::test]
async fn a_payload_that_does_not_fit_fails_for_good_and_says_why() {
    #[derive(Event, Serialize, Deserialize)]
    #[event(type = "record.published", key = "record:{id}")]
    struct OlderPublished {
        id: u64,
    }
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("h", |_: Published| async {})
        .on::<Published>("h")
        .start()
        .await
        .unwrap();
    let task = run_one(&bus, OlderPublished { id: 1 }).await;
    assert_eq!(task.life.state.status(), Status::Error);
    assert_eq!(task.attempts.len(), 1);
    let error = task.error.unwrap();
    assert!(
        error.contains("record.published does not fit") && error.contains("missing field `title`"),
        "{error}"
    );
    bus.stop().await;
}

#[tokio::test]
async fn a_program_has_extractors_of_its_own() {
    struct Actor(String);
    impl Extract for Actor {
        fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
            let actor = ctx.event().context.get("actor").cloned();
            actor.map(Actor).ok_or_else(|| HandlerError::permanent("nobody did it"))
        }
    }
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("h", |actor: Actor| async move { Ok::<_, String>(actor.0) })
        .on::<Published>("h")
        .start()
        .await
        .unwrap();
    let by_ann = Emit::new().context(RequestContext::new().with("actor", "ann"));
    let emitted = bus.emit_with(Published::new(1), by_ann).await.unwrap();
    assert_eq!(only_task(&bus, &emitted).await.result.unwrap().as_str(), "\"ann\"");
    let task = run_one(&bus, Published::new(2)).await;
    assert_eq!((task.error.as_deref(), task.attempts.len()), (Some("nobody did it"), 1));
    bus.stop().await;
}

use pointsman::{ErrorChain, StartError};

use super::*;

async fn do_nothing(_: RecordPublished) {}

#[tokio::test]
async fn invalid_builders_fail_before_the_store_is_opened() {
    let folder = SqliteStoreFolder::new();
    let url = folder.url();
    let start = async |builder: pointsman::BusBuilder<_>| builder.start().await.unwrap_err();

    let error = start(Bus::builder(&url).handler("a b", do_nothing)).await;
    assert!(matches!(error, StartError::InvalidName(_)), "{error}");

    let error = start(Bus::builder(&url).handler("h", do_nothing).handler("h", do_nothing)).await;
    assert_eq!(error.to_string(), "there are two handlers named h");

    let error = start(Bus::builder(&url).handler("h", do_nothing).on::<RecordPublished>("other")).await;
    assert_eq!(
        error.to_string(),
        "record.published is routed to the handler other, which does not exist; add it with `handler`"
    );

    let error = start(Bus::builder(&url).handler("h", do_nothing).on_event_type("record..x", "h")).await;
    assert!(error.to_string().contains("empty segment"), "{error}");

    let error = start(Bus::builder(&url).handler("h", |_: State<u8>| async {})).await;
    assert_eq!(
        ErrorChain(&error).to_string(),
        "the handler h cannot run: no state of type u8 was given to the bus; add it with `state`"
    );

    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn unknown_store_kinds_and_missing_folders_are_rejected() {
    for url in ["", "app.db", "sqlite:", "mysql://x"] {
        let error = Bus::builder(url).start().await.unwrap_err();
        assert!(matches!(error, StartError::UnknownStoreKind(_)), "{url}: {error}");
    }
    let error = Bus::builder("sqlite:/no/such/folder/app.db").start().await.unwrap_err();
    assert!(matches!(error, StartError::OpenSqlite(_)), "{error}");
}

#[tokio::test]
async fn restarted_bus_continues_the_journal() {
    let folder = SqliteStoreFolder::new();
    let first_bus = Bus::builder(&folder.url()).start().await.unwrap();
    let first_event = first_bus.emit(RecordPublished::new(1)).await.unwrap();
    first_bus.stop().await;

    let second_bus = Bus::builder(&folder.url())
        .handler("h", do_nothing)
        .on_event_type("record", "h")
        .start()
        .await
        .unwrap();
    assert!(first_event.tasks.is_empty(), "it was journaled before the handler was added");
    let second_event = second_bus.emit(RecordPublished::new(1)).await.unwrap();
    assert!(second_event.id > first_event.id);
    assert_eq!(second_event.prev, Some(first_event.id));
    assert_eq!(
        wait_until_only_task_finished(&second_bus, &second_event).await.lifecycle.state.status(),
        TaskStatus::Done
    );
    second_bus.stop().await;
}

#[tokio::test]
async fn tasks_left_by_a_stopped_bus_are_run_by_the_next_one() {
    let folder = SqliteStoreFolder::new();
    let first_bus = Bus::builder(&folder.url())
        .handler("h", |_: RecordPublished, ctx: Ctx| async move { ctx.cancelled().await })
        .on::<RecordPublished>("h")
        .workers(1)
        .start()
        .await
        .unwrap();
    let mut emitted = Vec::new();
    for id in 0..5 {
        emitted.push(first_bus.emit(RecordPublished::new(id)).await.unwrap());
    }
    // Simulates a kill: nothing is drained.
    first_bus.stop_within(Duration::ZERO).await;

    let second_bus = Bus::builder(&folder.url())
        .handler("h", do_nothing)
        .on::<RecordPublished>("h")
        .start()
        .await
        .unwrap();
    for first_event in &emitted {
        assert_eq!(
            wait_until_only_task_finished(&second_bus, first_event).await.lifecycle.state.status(),
            TaskStatus::Done
        );
    }
    second_bus.stop().await;
}

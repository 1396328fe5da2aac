use pointsman::StartError;

use super::*;

async fn nothing(_: Published) {}

#[tokio::test]
async fn faults_are_named_before_anything_is_opened() {
    let home = Home::new();
    let url = home.url();
    let start = async |builder: pointsman::Builder<_>| builder.start().await.unwrap_err();

    let fault = start(Bus::builder(&url).handler("a b", nothing)).await;
    assert!(matches!(fault, StartError::BadName(_)), "{fault}");

    let fault = start(Bus::builder(&url).handler("h", nothing).handler("h", nothing)).await;
    assert_eq!(fault.to_string(), "there are two handlers named h");

    let fault = start(Bus::builder(&url).handler("h", nothing).on::<Published>("other")).await;
    assert_eq!(fault.to_string(), "record.published is routed to the handler other, which does not exist");

    let fault = start(Bus::builder(&url).handler("h", nothing).on_key("record..x", "h")).await;
    assert!(fault.to_string().contains("empty segment"), "{fault}");

    let fault = start(Bus::builder(&url).handler("h", |_: State<u8>| async {})).await;
    assert_eq!(fault.to_string(), "the handler h: no state of type u8 was given to the bus");

    assert_eq!(std::fs::read_dir(home.0.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn only_stores_that_exist_are_opened() {
    for url in ["", "app.db", "sqlite:", "mysql://x"] {
        let fault = Bus::builder(url).start().await.unwrap_err();
        assert!(matches!(fault, StartError::NoSuchStore(_)), "{url}: {fault}");
    }
    let fault = Bus::builder("sqlite:/no/such/folder/app.db").start().await.unwrap_err();
    assert!(matches!(fault, StartError::Open(_)), "{fault}");
}

#[tokio::test]
async fn a_bus_goes_on_where_the_last_one_ended() {
    let home = Home::new();
    let first = Bus::builder(&home.url()).start().await.unwrap();
    let one = first.emit(Published::new(1)).await.unwrap();
    first.stop().await;

    let second = Bus::builder(&home.url()).handler("h", nothing).on_key("record", "h").start().await.unwrap();
    assert!(one.tasks.is_empty(), "it was journaled when nobody was to handle it");
    let two = second.emit(Published::new(1)).await.unwrap();
    assert!(two.id > one.id);
    assert_eq!(two.prev, Some(one.id));
    assert_eq!(only_task(&second, &two).await.life.state.status(), Status::Done);
    second.stop().await;
}

#[tokio::test]
async fn what_waited_when_the_bus_stopped_is_done_by_the_next_one() {
    let home = Home::new();
    let first = Bus::builder(&home.url())
        .handler("h", |_: Published, ctx: Ctx| async move { ctx.cancelled().await })
        .on::<Published>("h")
        .workers(1)
        .start()
        .await
        .unwrap();
    let mut emitted = Vec::new();
    for id in 0..5 {
        emitted.push(first.emit(Published::new(id)).await.unwrap());
    }
    // As good as killed: nothing is drained, and the store is closed under it.
    first.engine().stop(std::time::Duration::ZERO).await;
    first.engine().store().close();

    let second = Bus::builder(&home.url()).handler("h", nothing).on::<Published>("h").start().await.unwrap();
    for one in &emitted {
        assert_eq!(only_task(&second, one).await.life.state.status(), Status::Done);
    }
    second.stop().await;
}

//! Several programs on one store, of each kind that they can share.

use super::*;

#[tokio::test]
async fn programs_share_a_database_of_postgresql() {
    let url = pointsman_testing::shared().unwrap().create_database().unwrap();
    programs_with_handlers_of_their_own_share_a_store(&url).await;
}

#[tokio::test]
async fn programs_share_a_redis() {
    let url = pointsman_testing::shared_redis().unwrap().url_under(&pointsman_testing::fresh_prefix());
    programs_with_handlers_of_their_own_share_a_store(&url).await;
}

async fn programs_with_handlers_of_their_own_share_a_store(url: &str) {
    let (probe, mut seen) = Probe::<u64>::new();
    let indexer = Bus::builder(url)
        .name("indexer")
        .state(probe)
        .handler(
            "index",
            |event: Published, State(probe): State<Probe<u64>>| async move { probe.saw(event.id) },
        )
        .on::<Published>("index")
        .start()
        .await
        .unwrap();
    let mailer = Bus::builder(url)
        .name("mailer")
        .handler("mail", |_: Published| async {})
        .on::<Published>("mail")
        .start()
        .await
        .unwrap();
    let emitted = mailer.emit(Published::new(7)).await.unwrap();
    assert_eq!(emitted.tasks.len(), 2, "a handler of each");
    assert_eq!(saw(&mut seen).await, 7);
    let ended = within(mailer.ended(&emitted)).await.unwrap();
    assert!(ended.iter().all(|task| task.life.state.status() == Status::Done));
    indexer.stop().await;
    let emitted = mailer.emit(Published::new(8)).await.unwrap();
    assert_eq!(emitted.tasks.len(), 2, "what the other one had waits for it");
    mailer.stop().await;
}

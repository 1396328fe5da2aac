//! Several programs on one shared store: PostgreSQL and Redis.

use super::*;

#[tokio::test]
async fn programs_with_different_handlers_share_postgresql() {
    let url = pointsman_testing::shared_postgres().unwrap().create_database().unwrap();
    check_programs_share_store(&url).await;
}

#[tokio::test]
async fn programs_with_different_handlers_share_redis() {
    let url =
        pointsman_testing::shared_redis().unwrap().url_with_prefix(&pointsman_testing::unique_key_prefix());
    check_programs_share_store(&url).await;
}

async fn check_programs_share_store(url: &str) {
    let (probe, mut received) = HandlerProbe::<u64>::new();
    let indexer = Bus::builder(url)
        .program_name("indexer")
        .state(probe)
        .handler("index", |event: RecordPublished, State(probe): State<HandlerProbe<u64>>| async move {
            probe.send(event.id)
        })
        .on::<RecordPublished>("index")
        .start()
        .await
        .unwrap();
    let mailer = Bus::builder(url)
        .program_name("mailer")
        .handler("mail", |_: RecordPublished| async {})
        .on::<RecordPublished>("mail")
        .start()
        .await
        .unwrap();
    let emitted = mailer.emit(RecordPublished::new(7)).await.unwrap();
    assert_eq!(emitted.tasks.len(), 2, "one for a handler of each program");
    assert_eq!(receive_probed_value(&mut received).await, 7);
    let finished = with_timeout(mailer.wait_for_tasks(&emitted)).await.unwrap();
    assert!(finished.iter().all(|task| task.lifecycle.state.status() == TaskStatus::Done));
    indexer.stop().await;
    let emitted = mailer.emit(RecordPublished::new(8)).await.unwrap();
    assert_eq!(emitted.tasks.len(), 2, "the task of the stopped program waits for it");
    mailer.stop().await;
}

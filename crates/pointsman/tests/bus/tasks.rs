use pointsman::{ErrorReason, TaskCommandError, TaskOperationError};

use super::*;

#[tokio::test]
async fn cancelled_task_is_retried_on_request() {
    let bus = Bus::builder("sqlite::memory:")
        .handler("h", |_: RawEvent| async {})
        .on::<RecordPublished>("h")
        .start()
        .await
        .unwrap();
    bus.pause("h").await.unwrap();
    let emitted = bus.emit(RecordPublished::new(1)).await.unwrap();
    let task = &emitted.tasks[0];
    bus.cancel_task(task).await.unwrap();
    let cancelled = bus.read_task(task).await.unwrap().unwrap();
    assert_eq!(cancelled.lifecycle.state.error_reason(), Some(ErrorReason::Canceled));
    let refused = bus.cancel_task(task).await.unwrap_err();
    assert!(matches!(refused, TaskOperationError::Refused(TaskCommandError::WrongState(_))), "{refused:?}");
    bus.retry_task(task).await.unwrap();
    bus.resume("h").await.unwrap();
    assert_eq!(
        wait_until_only_task_finished(&bus, &emitted).await.lifecycle.state.status(),
        TaskStatus::Done
    );
    assert!(bus.metrics_text().await.contains("pointsman_"));
    bus.stop().await;
}

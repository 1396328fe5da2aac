use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pointsman::{NewRedrive, RedriveState};

use super::*;

/// Fails for good until the shared flag is set.
async fn fail_until_repaired(
    _: RawEvent,
    State(repaired): State<Arc<AtomicBool>>,
) -> Result<(), HandlerError> {
    match repaired.load(Ordering::Acquire) {
        true => Ok(()),
        false => Err(HandlerError::permanent("the target is broken")),
    }
}

#[tokio::test]
async fn redrive_retries_all_failed_tasks_of_a_handler() {
    let repaired = Arc::new(AtomicBool::new(false));
    let bus = Bus::builder("sqlite::memory:")
        .state(repaired.clone())
        .handler("h", fail_until_repaired)
        .on::<RecordPublished>("h")
        .start()
        .await
        .unwrap();
    let mut emitted = Vec::new();
    for id in 0..3 {
        emitted.push(bus.emit(RecordPublished::new(id)).await.unwrap());
        wait_until_only_task_finished(&bus, &emitted[id as usize]).await;
    }
    let filter = TaskFilter { handler: Some("h".parse().unwrap()), ..TaskFilter::default() };
    assert_eq!(bus.count_failed_tasks(filter.clone(), 10).await.unwrap(), 3);
    repaired.store(true, Ordering::Release);
    let id = bus.start_redrive(NewRedrive::new(filter).canaries(1).rate("1000/s".parse().unwrap())).unwrap();
    let wait_until_done = async {
        loop {
            let status = bus.find_redrive(&id).unwrap();
            if status.state.has_ended() {
                break status;
            }
            tokio::task::yield_now().await;
        }
    };
    let status = with_timeout(wait_until_done).await;
    assert_eq!((status.state, status.retried_count), (RedriveState::Done, 3));
    for event in &emitted {
        let task = wait_until_only_task_finished(&bus, event).await;
        assert_eq!(task.lifecycle.state.status(), TaskStatus::Done);
    }
    assert_eq!(bus.list_redrives().len(), 1);
    assert!(!bus.stop_redrive(&id), "it has ended");
    bus.stop().await;
}

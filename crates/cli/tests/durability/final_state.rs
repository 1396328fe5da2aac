//! The state of the server after the run, read through its API.

use std::time::Duration;

use pointsman_api::EventSeq;
use pointsman_api::client::{Client, EventQuery, TaskQuery};
use tokio::time::{Instant, sleep};

use crate::history::{FinalJournalEntry, FinalTask, History, SentEvent};
use crate::test_server::WAIT_TIMEOUT;

/// Waits until no task can run any more. The timeout restarts whenever fewer tasks are left.
pub(crate) async fn wait_until_idle(client: &Client) {
    let mut fewest_left = u64::MAX;
    let mut deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        let handlers = client.list_handlers().await.unwrap().handlers;
        let counts = handlers.iter().map(|handler| handler.counts);
        let left: u64 = counts.map(|c| c.ready + c.waiting + c.scheduled + c.running).sum();
        if left == 0 {
            return;
        }
        if left < fewest_left {
            fewest_left = left;
            deadline = Instant::now() + WAIT_TIMEOUT;
        }
        assert!(Instant::now() < deadline, "{left} tasks are stuck: {handlers:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Reads the whole journal and all tasks.
pub(crate) async fn read_final_state(client: &Client) -> History {
    let (journal, engine_event_ids) = read_events_and_engine_event_ids(client).await;
    History {
        journal_entries: journal,
        engine_event_ids,
        tasks: read_tasks(client).await,
        ..History::default()
    }
}

/// The emitted events, and the ids of engine events.
async fn read_events_and_engine_event_ids(client: &Client) -> (Vec<FinalJournalEntry>, Vec<u64>) {
    let (mut entries, mut engine_event_ids) = (vec![], vec![]);
    let mut after = Some(0);
    loop {
        let query = EventQuery { after, limit: Some(1000), ..EventQuery::default() };
        match client.list_events(&query).await.unwrap() {
            EventSeq::NonEmpty { event_snapshots, .. } => {
                after = event_snapshots.last().map(|event| event.event_id);
                let (engines, emitted): (Vec<_>, Vec<_>) =
                    event_snapshots.into_iter().partition(|event| event.is_engine_event());
                engine_event_ids.extend(engines.into_iter().map(|event| event.event_id));
                entries.extend(emitted.into_iter().map(|event| FinalJournalEntry {
                    id: event.event_id,
                    prev: event.prev.flatten(),
                    event: SentEvent {
                        name: event.value.decode().unwrap(),
                        event_type: event.event_type,
                        key: event.key,
                    },
                }));
            }
            EventSeq::Empty { .. } => return (entries, engine_event_ids),
            EventSeq::Torn { .. } => panic!("the journal is torn after {after:?}"),
        }
    }
}

async fn read_tasks(client: &Client) -> Vec<FinalTask> {
    let mut query = TaskQuery { limit: Some(1000), ..TaskQuery::default() };
    let mut tasks = vec![];
    loop {
        let page = client.list_tasks(&query).await.unwrap();
        tasks.extend(page.tasks.into_iter().map(|task| FinalTask {
            id: task.id,
            event_id: task.event_id.unwrap_or_default(),
            handler: task.handler,
            state: task.state,
        }));
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return tasks,
        }
    }
}

//! How the server itself sees the run once all is over, through its API.

use std::time::Duration;

use pointsman_api::EventSeq;
use pointsman_api::client::{Client, EventQuery, TaskQuery};
use tokio::time::{Instant, sleep};

use crate::history::{Entry, History, Sent, TaskEnd};
use crate::node::PATIENCE;

/// Waits until no task is left that could still run. Patience begins anew whenever there are fewer.
pub(crate) async fn settled(client: &Client) {
    let mut least = u64::MAX;
    let mut deadline = Instant::now() + PATIENCE;
    loop {
        let handlers = client.handlers().await.unwrap().handlers;
        let counts = handlers.iter().map(|handler| handler.counts);
        let left: u64 = counts.map(|c| c.ready + c.waiting + c.scheduled + c.running).sum();
        if left == 0 {
            return;
        }
        if left < least {
            least = left;
            deadline = Instant::now() + PATIENCE;
        }
        assert!(Instant::now() < deadline, "{left} tasks are stuck: {handlers:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// The whole journal and all tasks.
pub(crate) async fn read(client: &Client) -> History {
    let (journal, told) = journal(client).await;
    History { journal, told, tasks: tasks(client).await, ..History::default() }
}

/// What was emitted, and the ids of what the server told of itself.
async fn journal(client: &Client) -> (Vec<Entry>, Vec<u64>) {
    let (mut entries, mut told) = (vec![], vec![]);
    let mut after = Some(0);
    loop {
        let query = EventQuery { after, limit: Some(1000), ..EventQuery::default() };
        match client.events(&query).await.unwrap() {
            EventSeq::NonEmpty { event_snapshots, .. } => {
                after = event_snapshots.last().map(|event| event.event_id);
                let (engines, emitted): (Vec<_>, Vec<_>) =
                    event_snapshots.into_iter().partition(|event| event.is_engine());
                told.extend(engines.into_iter().map(|event| event.event_id));
                entries.extend(emitted.into_iter().map(|event| Entry {
                    id: event.event_id,
                    prev: event.prev.flatten(),
                    event: Sent { name: event.value.to().unwrap(), kind: event.kind, key: event.key },
                }));
            }
            EventSeq::Empty { .. } => return (entries, told),
            EventSeq::Torn { .. } => panic!("the journal is torn after {after:?}"),
        }
    }
}

async fn tasks(client: &Client) -> Vec<TaskEnd> {
    let mut query = TaskQuery { limit: Some(1000), ..TaskQuery::default() };
    let mut tasks = vec![];
    loop {
        let page = client.tasks(&query).await.unwrap();
        tasks.extend(page.tasks.into_iter().map(|task| TaskEnd {
            id: task.id,
            event: task.event_id.unwrap_or_default(),
            handler: task.handler,
            state: task.state,
        }));
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return tasks,
        }
    }
}

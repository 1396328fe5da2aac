//! Reading what the store tells, page by page.

use std::sync::Arc;

use pointsman_core::fire::Fire;
use pointsman_core::journal::{Extent, Filter};
use pointsman_core::store::{QueueView, Read, StoredLine, TaskFilter};
use pointsman_core::task::why::{Gate, GateKind};
use pointsman_core::task::{QueueOf, Task};
use pointsman_core::{Event, EventId, Status, TaskId, Tenant};

use super::*;

impl World<'_> {
    pub async fn extent(&self) -> Extent {
        must(self.store.extent().await)
    }

    pub async fn task(&self, id: &TaskId) -> Task {
        let found = must(self.store.task(id).await);
        found.unwrap_or_else(|| panic!("{id} should be there")).0
    }

    pub async fn status(&self, id: &TaskId) -> Status {
        self.task(id).await.life.state.status()
    }

    /// All events after `after` that match, read page by page.
    pub async fn read_after(&self, after: EventId, filter: &Filter) -> Vec<Arc<Event>> {
        let (mut after, mut found) = (after, Vec::new());
        for _ in 0..ENDLESS {
            let read = Read { after, until: None, filter: filter.clone(), limit: 100, backwards: false };
            let page = must(self.store.read(read).await);
            found.extend(page.events);
            if page.scanned >= page.extent.head {
                return found;
            }
            assert!(page.scanned > after, "reading does not advance");
            after = page.scanned;
        }
        panic!("reading does not end");
    }

    /// All events that are remembered.
    pub async fn read_all(&self) -> Vec<Arc<Event>> {
        self.read_after(self.extent().await.forgotten, &Filter::default()).await
    }

    /// All tasks that match, newest first, read page by page.
    pub async fn tasks(&self, filter: &TaskFilter) -> Vec<Task> {
        let (mut before, mut found) = (None, Vec::new());
        for _ in 0..ENDLESS {
            let page = must(self.store.tasks(filter.clone(), before, 50).await);
            found.extend(page.tasks);
            match page.next {
                None => return found,
                next => before = next,
            }
        }
        panic!("listing tasks does not end");
    }

    pub async fn logs(&self, id: &TaskId) -> Vec<StoredLine> {
        let (mut from, mut found) = (0, Vec::new());
        loop {
            let page = must(self.store.logs(id, from, 100).await).expect("the task is there");
            match page.lines.last() {
                None => return found,
                Some(last) => from = last.number + 1,
            }
            found.extend(page.lines);
        }
    }

    pub async fn messages(&self, id: &TaskId) -> Vec<String> {
        self.logs(id).await.into_iter().map(|stored| stored.line.message).collect()
    }

    /// The gates of a task that is there.
    pub async fn why(&self, id: &TaskId) -> Vec<Gate> {
        must(self.store.why(id, self.now).await).unwrap_or_else(|| panic!("{id} should be there"))
    }

    /// The gates that are closed.
    pub async fn closed(&self, id: &TaskId) -> Vec<GateKind> {
        self.why(id).await.into_iter().filter(|gate| !gate.open).map(|gate| gate.gate).collect()
    }

    /// The whole ledger of a schedule, the latest planned time first, read page by page.
    pub async fn fires(&self, name: &str) -> Vec<Fire> {
        let (mut before, mut found) = (None, Vec::new());
        for _ in 0..ENDLESS {
            let page = must(self.store.fires(&schedule(name), before, 10).await);
            match page.fires.last() {
                None => return found,
                Some(last) => before = Some(last.planned),
            }
            found.extend(page.fires);
        }
        panic!("the ledger does not end");
    }

    /// The queue of a handler, or of a collection (`source/collection`), for the default tenant; an empty one if
    /// none is told of.
    pub async fn queue(&self, name: &str) -> QueueView {
        match name.split_once('/') {
            Some((source, name)) => self.queue_of(source, QueueOf::Collection(collection(name))).await,
            None => self.queue_of(name, QueueOf::Events).await,
        }
    }

    /// The same of any kind.
    pub async fn queue_of(&self, name: &str, of: QueueOf) -> QueueView {
        let name = handler(name);
        let mut found = must(self.store.queues(None).await).into_iter();
        let tenant = Tenant::default();
        let is = |queue: &QueueView| queue.handler == name && queue.of == of && queue.tenant == tenant;
        found.find(is).unwrap_or(QueueView {
            handler: name,
            of,
            tenant,
            ready: 0,
            waiting: 0,
            scheduled: 0,
            running: 0,
            halted: 0,
            missing: 0,
            held: false,
            head_since: None,
        })
    }
}

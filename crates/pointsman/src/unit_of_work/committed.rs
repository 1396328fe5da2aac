//! What a unit of work has emitted.

use std::fmt;
use std::time::Duration;

use pointsman_core::journal::Filter;
use pointsman_core::store::StoreError;
use tokio::time::timeout;
use uuid::Uuid;

use crate::Bus;
use crate::emit::Emitted;
use crate::opened::Made;

/// An event that was missed is looked for again after so long.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Stands for an event that was committed and has no id yet. `pointsman.event_of` in the database knows it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt(Uuid);

impl Receipt {
    pub(crate) fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    pub(crate) fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A unit of work that was committed, and the events that it emitted, in the order of its operations.
///
/// On SQLite the events stand in the journal when the commit does. On PostgreSQL the commit leaves them to be sequenced
/// by a node, which happens within moments: until then each has a receipt.
pub struct Committed {
    bus: Bus,
    made: Made,
}

impl Committed {
    pub(super) fn new(bus: Bus, made: Made) -> Self {
        Self { bus, made }
    }

    /// How many events it emitted.
    pub fn len(&self) -> usize {
        match &self.made {
            Made::Journaled(events) => events.len(),
            Made::Left(receipts) => receipts.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The events, where they were journaled by the commit itself: on SQLite.
    pub fn events(&self) -> Option<&[Emitted]> {
        match &self.made {
            Made::Journaled(events) => Some(events),
            Made::Left(_) => None,
        }
    }

    /// A receipt for each event, where they were not: on PostgreSQL.
    pub fn receipts(&self) -> &[Receipt] {
        match &self.made {
            Made::Journaled(_) => &[],
            Made::Left(receipts) => receipts,
        }
    }

    /// The events, as soon as they stand in the journal. What was committed stays so, whatever becomes of this.
    pub async fn journaled(self) -> Result<Vec<Emitted>, StoreError> {
        let receipts = match self.made {
            Made::Journaled(events) => return Ok(events),
            Made::Left(receipts) => receipts,
        };
        let mut events = Vec::with_capacity(receipts.len());
        for receipt in receipts {
            events.push(journaled(&self.bus, receipt).await?);
        }
        Ok(events)
    }
}

async fn journaled(bus: &Bus, receipt: Receipt) -> Result<Emitted, StoreError> {
    let (observer, anything) = (bus.engine().observer(), Filter::default());
    loop {
        let mut seen = observer.extent().await?.head;
        if let Some(id) = bus.opened().event_of(receipt).await? {
            let gone = || StoreError::Damaged(format!("the event of the receipt {receipt} is gone"));
            let view = bus.engine().store().event(id).await?.ok_or_else(gone)?;
            let tasks = view.tasks.into_iter().map(|task| task.id).collect();
            return Ok(Emitted { id, prev: view.event.prev, tasks, repeated: false });
        }
        tokio::select! {
            _ = timeout(LOOK_AGAIN, observer.matched(&anything, &mut seen)) => {}
            () = observer.stopped() => return Err(StoreError::Closed),
        }
    }
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed").field("events", &self.len()).finish_non_exhaustive()
    }
}

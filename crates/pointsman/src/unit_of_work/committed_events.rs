//! The events of a committed unit of work.

use std::fmt;
use std::time::Duration;

use pointsman_core::journal::EventFilter;
use pointsman_core::store::StoreError;
use tokio::time::timeout;
use uuid::Uuid;

use crate::Bus;
use crate::bus_store::UnitOfWorkEvents;
use crate::emit::EmittedEvent;

/// The interval at which the event of a receipt is looked up again, in case a notification was missed.
const RECEIPT_RECHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Identifies a committed event that has no id yet. `pointsman.event_of` in the database accepts it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventReceipt(Uuid);

impl EventReceipt {
    #[cfg(feature = "postgres")]
    pub(crate) fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for EventReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The events of a committed unit of work, in the order of its operations.
///
/// On SQLite the commit journals the events. On PostgreSQL it leaves them in the outbox, and a node journals them
/// within moments: until then each has a receipt.
pub struct CommittedEvents {
    bus: Bus,
    events: UnitOfWorkEvents,
}

impl CommittedEvents {
    pub(super) fn new(bus: Bus, events: UnitOfWorkEvents) -> Self {
        Self { bus, events }
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        match &self.events {
            UnitOfWorkEvents::Journaled(events) => events.len(),
            UnitOfWorkEvents::InOutbox(receipts) => receipts.len(),
        }
    }

    /// Whether the unit of work emitted no event.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The events, if the commit journaled them: on SQLite.
    pub fn journaled_events(&self) -> Option<&[EmittedEvent]> {
        match &self.events {
            UnitOfWorkEvents::Journaled(events) => Some(events),
            UnitOfWorkEvents::InOutbox(_) => None,
        }
    }

    /// A receipt for each event, if the commit left them in the outbox: on PostgreSQL.
    pub fn outbox_receipts(&self) -> &[EventReceipt] {
        match &self.events {
            UnitOfWorkEvents::Journaled(_) => &[],
            UnitOfWorkEvents::InOutbox(receipts) => receipts,
        }
    }

    /// Waits until the events are journaled, and returns them. An error does not undo the commit.
    pub async fn wait_until_journaled(self) -> Result<Vec<EmittedEvent>, StoreError> {
        let receipts = match self.events {
            UnitOfWorkEvents::Journaled(events) => return Ok(events),
            UnitOfWorkEvents::InOutbox(receipts) => receipts,
        };
        let mut events = Vec::with_capacity(receipts.len());
        for receipt in receipts {
            events.push(wait_for_event_of_receipt(&self.bus, receipt).await?);
        }
        Ok(events)
    }
}

async fn wait_for_event_of_receipt(bus: &Bus, receipt: EventReceipt) -> Result<EmittedEvent, StoreError> {
    let (observer, any_event) = (bus.engine.observer(), EventFilter::default());
    loop {
        let mut head = observer.read_journal_range().await?.newest_event_id;
        if let Some(id) = bus.store.find_event_id_of_receipt(receipt).await? {
            let no_such_event =
                || StoreError::damaged(format!("the event of the receipt {receipt} does not exist"));
            let view = bus.engine.store().read_event(id).await?.ok_or_else(no_such_event)?;
            let tasks = view.tasks.into_iter().map(|task| task.id).collect();
            return Ok(EmittedEvent { id, prev: view.event.prev, tasks, is_repeat: false });
        }
        tokio::select! {
            _ = timeout(RECEIPT_RECHECK_INTERVAL, observer.wait_for_matching_event(&any_event, &mut head)) => {}
            () = observer.wait_until_stopped() => return Err(StoreError::Closed),
        }
    }
}

impl fmt::Debug for CommittedEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommittedEvents").field("events", &self.len()).finish_non_exhaustive()
    }
}

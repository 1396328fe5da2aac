//! The history of a run as seen from outside the server, and the rules that it must satisfy.
//!
//! The history is plain data without a server, and [`History::violations`] finds every broken rule, so that the checker
//! can be tested with histories that are wrong on purpose.

mod deliveries;
mod journal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// One event as its producer meant it. Its name is its payload, and unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentEvent {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) key: Option<String>,
}

/// One request of a producer: events that are journaled together or not at all. A request that is repeated
/// with an idempotency key is still one.
#[derive(Clone, Debug)]
pub(crate) struct EmitRequest {
    pub(crate) events: Vec<SentEvent>,
    /// The highest acknowledged id when the request was first sent.
    pub(crate) floor: u64,
    /// The acknowledged events; none if no response arrived.
    pub(crate) acknowledged: Option<Vec<AcknowledgedEvent>>,
    /// A handler emitted the events and its task is done: they must be stored without an acknowledgement.
    pub(crate) effect: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcknowledgedEvent {
    pub(crate) id: u64,
    pub(crate) prev: Option<u64>,
    pub(crate) tasks: Vec<String>,
}

/// An event as the journal has it in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalEntry {
    pub(crate) id: u64,
    pub(crate) prev: Option<u64>,
    pub(crate) event: SentEvent,
}

/// A task at the end of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinalTask {
    pub(crate) id: String,
    pub(crate) event: u64,
    pub(crate) handler: String,
    pub(crate) state: String,
}

/// An event that reached a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) handler: String,
    pub(crate) event: u64,
    pub(crate) prev: Option<u64>,
    /// The previous event of the object that this handler got, if the handler is given that id.
    pub(crate) prev_sent: Option<Option<u64>>,
    pub(crate) attempt: u32,
    pub(crate) fence: u64,
    /// When it began and ended, in the handler's own order of things. One that was cut off has no end.
    pub(crate) began: u64,
    pub(crate) ended: Option<u64>,
}

/// The ids that one reader has read, in order.
#[derive(Clone, Debug)]
pub(crate) struct ReaderLog {
    pub(crate) reader: String,
    pub(crate) ids: Vec<u64>,
    /// How often a gap was reported to it.
    pub(crate) torn: usize,
}

/// All observations of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The handlers that each type is routed to.
    pub(crate) routes: BTreeMap<String, Vec<String>>,
    pub(crate) emits: Vec<EmitRequest>,
    pub(crate) journal: Vec<JournalEntry>,
    /// The ids of engine events.
    pub(crate) engine_ids: Vec<u64>,
    pub(crate) tasks: Vec<FinalTask>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) reader_logs: Vec<ReaderLog>,
    /// How often the server was killed, and how many tasks it runs at a time.
    pub(crate) kills: usize,
    pub(crate) slots: usize,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// It was acknowledged, or emitted by a task that is done, and is not in the journal.
    Lost { name: String },
    /// It is in the journal more than once.
    Duplicate { name: String, ids: Vec<u64> },
    /// Some events of one request are in the journal and others are not, or not in the order they were sent.
    PartialRequest { names: Vec<String>, ids: Vec<u64> },
    /// Nobody sent it, or not like this.
    Unexpected { id: u64 },
    /// The journal has it otherwise than it was acknowledged.
    Altered { name: String, id: u64 },
    /// An id that is not above those given out before.
    NotAscending { whose: String, id: u64, after: u64 },
    /// A `prev` that is not the preceding event of the object.
    WrongPrev { whose: String, id: u64, actual: Option<u64>, expected: Option<u64> },
    /// A reader was not shown an event, or one that is not there, or out of order.
    WrongReading { reader: String, id: u64 },
    /// A gap was reported to a reader.
    Torn { reader: String },
    /// An event does not have exactly one task for each of its handlers.
    WrongTasks { event: u64, handlers: Vec<String> },
    /// A task that did not end well.
    NotDone { task: String, state: String },
    /// The task is done, but its handler never saw the event, or never to its end.
    NotDelivered { handler: String, event: u64 },
    /// A handler that was sent what it was not meant to get.
    Misdelivered { handler: String, event: u64 },
    /// The same attempt reached its handler twice, or two attempts shared a fence.
    SameAttempt { handler: String, event: u64, attempt: u32 },
    /// The second was begun before the first, which precedes it in their lane, had ended.
    OutOfOrder { handler: String, first: u64, second: u64 },
    /// More was sent again than was in flight when the server was killed.
    Repeated { repeats: usize, max_repeats: usize },
}

impl History {
    /// All broken rules of this history.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        let mut violations = vec![];
        self.check_emits(&mut violations);
        self.check_journal(&mut violations);
        self.check_reader_logs(&mut violations);
        self.check_tasks(&mut violations);
        self.check_deliveries(&mut violations);
        self.check_lanes(&mut violations);
        violations
    }

    /// The ids of everything that a reader is to see, in order.
    pub(crate) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> =
            self.journal.iter().map(|entry| entry.id).chain(self.engine_ids.clone()).collect();
        ids.sort_unstable();
        ids
    }

    fn handlers(&self, kind: &str) -> &[String] {
        self.routes.get(kind).map_or(&[], Vec::as_slice)
    }
}

//! The history of a run as seen from outside the server, and the rules that it must satisfy.
//!
//! The history is plain data without a server, and [`History::find_violations`] finds every broken rule, so that the
//! checker can be tested with histories that are wrong on purpose.

mod delivery_rules;
mod journal_rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// An event as its producer sent it. Its name is its payload, and unique in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentEvent {
    pub(crate) name: String,
    pub(crate) event_type: String,
    pub(crate) key: Option<String>,
}

/// A request of a producer: its events are journaled together or not at all. All sendings with one idempotency key are
/// one request.
#[derive(Clone, Debug)]
pub(crate) struct EmitRequest {
    pub(crate) events: Vec<SentEvent>,
    /// The highest acknowledged id when the request was first sent.
    pub(crate) newest_acknowledged_id_before: u64,
    /// The acknowledged events; none if no response arrived.
    pub(crate) acknowledged_events: Option<Vec<AcknowledgedEvent>>,
    /// Whether a handler whose task is done emitted the events: they must be stored although no response acknowledges
    /// them.
    pub(crate) emitted_by_handler: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcknowledgedEvent {
    pub(crate) id: u64,
    pub(crate) prev: Option<u64>,
    pub(crate) task_ids: Vec<String>,
}

/// An event in the journal at the end of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinalJournalEntry {
    pub(crate) id: u64,
    pub(crate) prev: Option<u64>,
    pub(crate) event: SentEvent,
}

/// A task at the end of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinalTask {
    pub(crate) id: String,
    pub(crate) event_id: u64,
    pub(crate) handler: String,
    pub(crate) state: String,
}

/// An event that reached a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedDelivery {
    pub(crate) handler: String,
    pub(crate) event_id: u64,
    pub(crate) prev: Option<u64>,
    /// The previous event of the object that this handler got, if the handler is given that id.
    pub(crate) prev_sent: Option<Option<u64>>,
    pub(crate) attempt: u32,
    pub(crate) fence: u64,
    /// The positions of its start and its end in the handler's own sequence of both. A delivery that was cut off has no
    /// end.
    pub(crate) start_position: u64,
    pub(crate) end_position: Option<u64>,
}

/// The event ids that one reader has received, in order.
#[derive(Clone, Debug)]
pub(crate) struct ReaderLog {
    pub(crate) reader_name: String,
    pub(crate) event_ids: Vec<u64>,
    /// How often the server reported a gap (`Torn`) to the reader.
    pub(crate) gap_count: usize,
}

/// All observations of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The handlers that each type is routed to.
    pub(crate) routes: BTreeMap<String, Vec<String>>,
    pub(crate) emit_requests: Vec<EmitRequest>,
    pub(crate) journal_entries: Vec<FinalJournalEntry>,
    /// The ids of engine events.
    pub(crate) engine_event_ids: Vec<u64>,
    pub(crate) tasks: Vec<FinalTask>,
    pub(crate) deliveries: Vec<RecordedDelivery>,
    pub(crate) reader_logs: Vec<ReaderLog>,
    /// How often the server was killed.
    pub(crate) kill_count: usize,
    /// How many tasks the server runs at a time.
    pub(crate) worker_slots: usize,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// An event that was acknowledged, or emitted by a task that is done, is not in the journal.
    LostEvent { name: String },
    /// An event is in the journal more than once.
    DuplicateEvent { name: String, ids: Vec<u64> },
    /// Some events of one request are in the journal and others are not, or not in the order they were sent.
    PartialRequest { names: Vec<String>, ids: Vec<u64> },
    /// The journal contains an event that no producer sent, or that differs from the sent one.
    UnexpectedEvent { id: u64 },
    /// An event in the journal differs from its acknowledgement.
    DiffersFromAcknowledgement { name: String, id: u64 },
    /// An id is not above those that were assigned before.
    IdNotAscending { whose: String, id: u64, after: u64 },
    /// A `prev` is not the id of the preceding event of the object.
    WrongPrev { whose: String, id: u64, actual: Option<u64>, expected: Option<u64> },
    /// A reader missed an event, got one that is not in the journal, or got one out of order.
    WrongReaderLog { reader: String, id: u64 },
    /// A gap was reported to a reader.
    GapReported { reader: String },
    /// An event does not have exactly one task for each of its handlers.
    WrongTasks { event: u64, handlers: Vec<String> },
    /// A task did not end in the state `done`.
    TaskNotDone { task: String, state: String },
    /// A task is done, but its handler never got the event, or never ended handling it.
    NotDelivered { handler: String, event: u64 },
    /// A handler got an event that is not routed to it, or that is not in the journal.
    Misdelivered { handler: String, event: u64 },
    /// The same attempt reached its handler twice, or two attempts shared a fence.
    RepeatedAttempt { handler: String, event: u64, attempt: u32 },
    /// The handling of the second event began before that of the first, which precedes it in their lane, had ended.
    OutOfOrder { handler: String, first: u64, second: u64 },
    /// More events were delivered again than can have been in flight when the server was killed.
    TooManyRedeliveries { repeats: usize, max_repeats: usize },
}

impl History {
    /// All broken rules of this history.
    pub(crate) fn find_violations(&self) -> Vec<Violation> {
        let mut violations = vec![];
        self.check_emits(&mut violations);
        self.check_ids_and_prevs(&mut violations);
        self.check_reader_logs(&mut violations);
        self.check_tasks(&mut violations);
        self.check_deliveries(&mut violations);
        self.check_lanes(&mut violations);
        violations
    }

    /// The ids of all events, emitted and by the engine, in the order in which a reader must get them.
    pub(crate) fn all_event_ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> =
            self.journal_entries.iter().map(|entry| entry.id).chain(self.engine_event_ids.clone()).collect();
        ids.sort_unstable();
        ids
    }

    fn handlers_of_event_type(&self, event_type: &str) -> &[String] {
        self.routes.get(event_type).map_or(&[], Vec::as_slice)
    }
}

//! The rules of the journal: which events it contains, in which order, and which of them observers get.

use std::collections::{BTreeMap, HashMap};

use super::{EmitRequest, FinalJournalEntry, History, Violation};

impl History {
    /// Checks that acknowledged events are stored once, others at most once, and requests completely or not at all.
    pub(super) fn check_emits(&self, violations: &mut Vec<Violation>) {
        let mut found: HashMap<&str, Vec<&FinalJournalEntry>> = HashMap::new();
        for entry in &self.journal_entries {
            found.entry(&entry.event.name).or_default().push(entry);
        }
        for emit in &self.emit_requests {
            let entries: Vec<Vec<&FinalJournalEntry>> =
                emit.events.iter().map(|sent| found.remove(&*sent.name).unwrap_or_default()).collect();
            check_emit(emit, &entries, violations);
        }
        // The remaining events were never sent.
        violations
            .extend(found.into_values().flatten().map(|entry| Violation::UnexpectedEvent { id: entry.id }));
    }

    /// Checks that ids ascend, and that each event has the id of the previous event of its object.
    pub(super) fn check_ids_and_prevs(&self, violations: &mut Vec<Violation>) {
        let mut newest = 0;
        let mut last: HashMap<&str, u64> = HashMap::new();
        for entry in &self.journal_entries {
            if entry.id <= newest {
                let whose = "journal".into();
                violations.push(Violation::IdNotAscending { whose, id: entry.id, after: newest });
            }
            newest = newest.max(entry.id);
            let expected = entry.event.key.as_deref().and_then(|key| last.insert(key, entry.id));
            if entry.prev != expected {
                let whose = "journal".into();
                violations.push(Violation::WrongPrev { whose, id: entry.id, actual: entry.prev, expected });
            }
        }
    }

    /// Checks that every reader got every event once, in order, without a gap.
    pub(super) fn check_reader_logs(&self, violations: &mut Vec<Violation>) {
        for reading in &self.reader_logs {
            let reader = || reading.reader_name.clone();
            if reading.gap_count > 0 {
                violations.push(Violation::GapReported { reader: reader() });
            }
            let first_wrong_id = self.first_wrong_id(&reading.event_ids);
            violations.extend(first_wrong_id.map(|id| Violation::WrongReaderLog { reader: reader(), id }));
        }
    }

    /// The first id at which the ids that a reader received differ from the journal. Later ids are shifted and not compared.
    fn first_wrong_id(&self, read: &[u64]) -> Option<u64> {
        let mut journal = self.all_event_ids().into_iter();
        for &id in read {
            match journal.next() {
                Some(expected) if expected == id => {}
                Some(expected) => return Some(expected.min(id)),
                None => return Some(id),
            }
        }
        journal.next()
    }

    /// Checks that every event has one task for each of its handlers, that these are the acknowledged ones, and that all
    /// of them are done.
    pub(super) fn check_tasks(&self, violations: &mut Vec<Violation>) {
        let mut tasks: BTreeMap<u64, Vec<(&str, &str)>> = BTreeMap::new();
        for task in &self.tasks {
            tasks.entry(task.event_id).or_default().push((&task.handler, &task.id));
            if task.state != "done" {
                violations.push(Violation::TaskNotDone { task: task.id.clone(), state: task.state.clone() });
            }
        }
        for entry in &self.journal_entries {
            let of_event = tasks.remove(&entry.id).unwrap_or_default();
            let mut handlers: Vec<&str> = of_event.iter().map(|(handler, _)| *handler).collect();
            let mut expected: Vec<&str> =
                self.handlers_of_event_type(&entry.event.event_type).iter().map(String::as_str).collect();
            handlers.sort_unstable();
            expected.sort_unstable();
            if handlers != expected {
                violations
                    .push(Violation::WrongTasks { event: entry.id, handlers: to_owned_names(&handlers) });
            }
        }
        violations.extend(tasks.into_iter().map(|(event, left)| {
            let handlers: Vec<&str> = left.iter().map(|(handler, _)| *handler).collect();
            Violation::WrongTasks { event, handlers: to_owned_names(&handlers) }
        }));
        self.check_acknowledged_tasks(violations);
    }

    fn check_acknowledged_tasks(&self, violations: &mut Vec<Violation>) {
        let events: HashMap<&str, u64> = self.tasks.iter().map(|task| (&*task.id, task.event_id)).collect();
        for emit in &self.emit_requests {
            for (sent, acknowledged) in emit.events.iter().zip(emit.acknowledged_events.iter().flatten()) {
                let belongs_to_event = |id: &String| events.get(id.as_str()) == Some(&acknowledged.id);
                if !acknowledged.task_ids.iter().all(belongs_to_event) {
                    violations.push(Violation::DiffersFromAcknowledgement {
                        name: sent.name.clone(),
                        id: acknowledged.id,
                    });
                }
            }
        }
    }
}

fn to_owned_names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Compares a request with the journal. `entries` are those that the journal has of each event of the request.
fn check_emit(emit: &EmitRequest, entries: &[Vec<&FinalJournalEntry>], violations: &mut Vec<Violation>) {
    let names = || emit.events.iter().map(|sent| sent.name.clone()).collect();
    for (sent, found) in emit.events.iter().zip(entries) {
        if found.len() > 1 {
            let ids = found.iter().map(|entry| entry.id).collect();
            violations.push(Violation::DuplicateEvent { name: sent.name.clone(), ids });
        }
        let differs = |entry: &&&FinalJournalEntry| entry.event != *sent;
        violations
            .extend(found.iter().filter(differs).map(|entry| Violation::UnexpectedEvent { id: entry.id }));
        let below = |entry: &&&FinalJournalEntry| entry.id <= emit.newest_acknowledged_id_before;
        violations.extend(found.iter().filter(below).map(|entry| Violation::IdNotAscending {
            whose: sent.name.clone(),
            id: entry.id,
            after: emit.newest_acknowledged_id_before,
        }));
    }
    let ids: Vec<u64> = entries.iter().filter_map(|found| found.first()).map(|entry| entry.id).collect();
    let whole = ids.is_empty() || ids.len() == emit.events.len();
    if !whole || !ids.is_sorted() {
        violations.push(Violation::PartialRequest { names: names(), ids: ids.clone() });
    }
    if emit.emitted_by_handler && ids.is_empty() {
        violations.extend(emit.events.iter().map(|sent| Violation::LostEvent { name: sent.name.clone() }));
    }
    let Some(acknowledged) = &emit.acknowledged_events else { return };
    if acknowledged.len() != emit.events.len() {
        violations.push(Violation::PartialRequest {
            names: names(),
            ids: acknowledged.iter().map(|a| a.id).collect(),
        });
    }
    for ((sent, found), acknowledged) in emit.events.iter().zip(entries).zip(acknowledged) {
        match found.first() {
            None => violations.push(Violation::LostEvent { name: sent.name.clone() }),
            Some(entry) if (entry.id, entry.prev) != (acknowledged.id, acknowledged.prev) => {
                violations
                    .push(Violation::DiffersFromAcknowledgement { name: sent.name.clone(), id: entry.id });
            }
            Some(_) => {}
        }
    }
}

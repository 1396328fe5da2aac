//! The rules of the journal: what is in it, in which order, and what observers see of it.

use std::collections::{BTreeMap, HashMap};

use super::{Emit, Entry, Fault, History};

impl History {
    /// What was acknowledged is there, once; what was not is there at most once; requests are whole.
    pub(super) fn check_emits(&self, faults: &mut Vec<Fault>) {
        let mut found: HashMap<&str, Vec<&Entry>> = HashMap::new();
        for entry in &self.journal {
            found.entry(&entry.event.name).or_default().push(entry);
        }
        for emit in &self.emits {
            let entries: Vec<Vec<&Entry>> =
                emit.events.iter().map(|sent| found.remove(&*sent.name).unwrap_or_default()).collect();
            check_emit(emit, &entries, faults);
        }
        // Whatever is left was never sent.
        faults.extend(found.into_values().flatten().map(|entry| Fault::Foreign { id: entry.id }));
    }

    /// Ids ascend, and each event knows the one before it of its object.
    pub(super) fn check_journal(&self, faults: &mut Vec<Fault>) {
        let mut newest = 0;
        let mut last: HashMap<&str, u64> = HashMap::new();
        for entry in &self.journal {
            if entry.id <= newest {
                let whose = "journal".into();
                faults.push(Fault::NotAscending { whose, id: entry.id, after: newest });
            }
            newest = newest.max(entry.id);
            let really = entry.event.key.as_deref().and_then(|key| last.insert(key, entry.id));
            if entry.prev != really {
                let whose = "journal".into();
                faults.push(Fault::WrongPrev { whose, id: entry.id, told: entry.prev, really });
            }
        }
    }

    /// Every reader saw every event once, in order, and was never told of a gap.
    pub(super) fn check_readings(&self, faults: &mut Vec<Fault>) {
        for reading in &self.readings {
            let reader = || reading.reader.clone();
            if reading.torn > 0 {
                faults.push(Fault::Torn { reader: reader() });
            }
            let misread = self.misread(&reading.ids);
            faults.extend(misread.map(|id| Fault::Misread { reader: reader(), id }));
        }
    }

    /// Where a reading first differs from the journal. Everything after that is shifted, and says nothing.
    fn misread(&self, read: &[u64]) -> Option<u64> {
        let mut journal = self.ids().into_iter();
        for &id in read {
            match journal.next() {
                Some(expected) if expected == id => {}
                Some(expected) => return Some(expected.min(id)),
                None => return Some(id),
            }
        }
        journal.next()
    }

    /// Every event has one task for each of its handlers, they are those that were acknowledged, and all of
    /// them are done.
    pub(super) fn check_tasks(&self, faults: &mut Vec<Fault>) {
        let mut tasks: BTreeMap<u64, Vec<(&str, &str)>> = BTreeMap::new();
        for task in &self.tasks {
            tasks.entry(task.event).or_default().push((&task.handler, &task.id));
            if task.state != "done" {
                faults.push(Fault::NotDone { task: task.id.clone(), state: task.state.clone() });
            }
        }
        for entry in &self.journal {
            let of_event = tasks.remove(&entry.id).unwrap_or_default();
            let mut handlers: Vec<&str> = of_event.iter().map(|(handler, _)| *handler).collect();
            let mut expected: Vec<&str> =
                self.handlers(&entry.event.kind).iter().map(String::as_str).collect();
            handlers.sort_unstable();
            expected.sort_unstable();
            if handlers != expected {
                faults.push(Fault::WrongTasks { event: entry.id, handlers: owned(&handlers) });
            }
        }
        faults.extend(tasks.into_iter().map(|(event, left)| {
            let handlers: Vec<&str> = left.iter().map(|(handler, _)| *handler).collect();
            Fault::WrongTasks { event, handlers: owned(&handlers) }
        }));
        self.check_acknowledged_tasks(faults);
    }

    fn check_acknowledged_tasks(&self, faults: &mut Vec<Fault>) {
        let events: HashMap<&str, u64> = self.tasks.iter().map(|task| (&*task.id, task.event)).collect();
        for emit in &self.emits {
            for (sent, acknowledged) in emit.events.iter().zip(emit.acknowledged.iter().flatten()) {
                let here = |id: &String| events.get(id.as_str()) == Some(&acknowledged.id);
                if !acknowledged.tasks.iter().all(here) {
                    faults.push(Fault::Altered { name: sent.name.clone(), id: acknowledged.id });
                }
            }
        }
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// One request against what the journal has of each of its events.
fn check_emit(emit: &Emit, entries: &[Vec<&Entry>], faults: &mut Vec<Fault>) {
    let names = || emit.events.iter().map(|sent| sent.name.clone()).collect();
    for (sent, found) in emit.events.iter().zip(entries) {
        if found.len() > 1 {
            let ids = found.iter().map(|entry| entry.id).collect();
            faults.push(Fault::Doubled { name: sent.name.clone(), ids });
        }
        let differs = |entry: &&&Entry| entry.event != *sent;
        faults.extend(found.iter().filter(differs).map(|entry| Fault::Foreign { id: entry.id }));
        let below = |entry: &&&Entry| entry.id <= emit.floor;
        faults.extend(found.iter().filter(below).map(|entry| Fault::NotAscending {
            whose: sent.name.clone(),
            id: entry.id,
            after: emit.floor,
        }));
    }
    let ids: Vec<u64> = entries.iter().filter_map(|found| found.first()).map(|entry| entry.id).collect();
    let whole = ids.is_empty() || ids.len() == emit.events.len();
    if !whole || !ids.is_sorted() {
        faults.push(Fault::TornApart { names: names(), ids: ids.clone() });
    }
    if emit.effect && ids.is_empty() {
        faults.extend(emit.events.iter().map(|sent| Fault::Lost { name: sent.name.clone() }));
    }
    let Some(acknowledged) = &emit.acknowledged else { return };
    if acknowledged.len() != emit.events.len() {
        faults.push(Fault::TornApart { names: names(), ids: acknowledged.iter().map(|a| a.id).collect() });
    }
    for ((sent, found), acknowledged) in emit.events.iter().zip(entries).zip(acknowledged) {
        match found.first() {
            None => faults.push(Fault::Lost { name: sent.name.clone() }),
            Some(entry) if (entry.id, entry.prev) != (acknowledged.id, acknowledged.prev) => {
                faults.push(Fault::Altered { name: sent.name.clone(), id: entry.id });
            }
            Some(_) => {}
        }
    }
}

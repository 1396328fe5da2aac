//! Events of the journal.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;

use pointsman_core::EventId;

use super::{Bytes, Way};
use crate::batch::Batch;
use crate::keys::Keys;
use crate::link::{Words, words};

#[derive(Debug, Default)]
pub(super) struct Events {
    added: BTreeMap<EventId, Bytes>,
    deleted: BTreeSet<EventId>,
    fetched: HashMap<EventId, Option<Bytes>>,
}

impl Events {
    pub(super) fn append(&mut self, id: EventId, value: Bytes) {
        self.added.insert(id, value);
    }

    pub(super) fn delete(&mut self, id: EventId) {
        self.deleted.insert(id);
    }

    /// An event, if it is known; and then whether it is there.
    pub(super) fn get(&self, id: EventId) -> Option<Option<Bytes>> {
        if self.deleted.contains(&id) {
            return Some(None);
        }
        match self.added.get(&id) {
            Some(value) => Some(Some(value.clone())),
            None => self.fetched.get(&id).cloned(),
        }
    }

    pub(super) fn fetched(&mut self, id: EventId, value: Option<Bytes>) {
        self.fetched.insert(id, value);
    }

    pub(super) fn merge(
        &self,
        mut found: Vec<(EventId, Bytes)>,
        from: EventId,
        to: EventId,
        way: Way,
        most: usize,
    ) -> Vec<(EventId, Bytes)> {
        found.retain(|(id, _)| !self.deleted.contains(id));
        let added = self.added.range(from..=to).map(|(id, value)| (*id, value.clone()));
        match way {
            Way::Up => found.extend(added),
            Way::Down => found.splice(0..0, added.rev()).for_each(drop),
        }
        found.truncate(most);
        found
    }

    pub(super) fn write(&self, keys: &Keys, writes: &mut Batch) {
        let journal = keys.journal();
        for (id, value) in &self.added {
            writes.write(&[b"XADD", &*journal, entry(*id).as_bytes(), b"e", value]);
        }
        let deleted: Vec<String> = self.deleted.iter().map(|id| entry(*id)).collect();
        writes.write_many(&[b"XDEL", &journal], 1, &deleted);
    }
}

/// The name of an event in the stream.
pub(super) fn entry(id: EventId) -> String {
    format!("{id}-0")
}

pub(super) fn range_words(key: Vec<u8>, from: EventId, to: EventId, way: Way, most: usize) -> Words {
    let most = i64::try_from(most).unwrap_or(i64::MAX).to_string();
    match way {
        Way::Up => words!["XRANGE", key, entry(from), entry(to), "COUNT", most],
        Way::Down => words!["XREVRANGE", key, entry(to), entry(from), "COUNT", most],
    }
}

//! Journal events in the overlay: pending appends and deletions, and cached events.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;

use pointsman_core::EventId;

use super::{Bytes, ScanOrder};
use crate::command_encoding::CommandArgsBuffer;
use crate::connection::{CommandArgs, args};
use crate::keys::Keys;

/// Events that the transaction appended or deleted, and cached ones.
#[derive(Debug, Default)]
pub(super) struct EventOverlay {
    appended: BTreeMap<EventId, Bytes>,
    deleted: BTreeSet<EventId>,
    cached: HashMap<EventId, Option<Bytes>>,
}

impl EventOverlay {
    pub(super) fn append(&mut self, id: EventId, value: Bytes) {
        self.appended.insert(id, value);
    }

    pub(super) fn delete(&mut self, id: EventId) {
        self.deleted.insert(id);
    }

    /// Returns a cached event: `None` if unknown, `Some(None)` if it does not exist.
    pub(super) fn find_cached(&self, id: EventId) -> Option<Option<Bytes>> {
        if self.deleted.contains(&id) {
            return Some(None);
        }
        match self.appended.get(&id) {
            Some(value) => Some(Some(value.clone())),
            None => self.cached.get(&id).cloned(),
        }
    }

    pub(super) fn cache_event(&mut self, id: EventId, value: Option<Bytes>) {
        self.cached.insert(id, value);
    }

    /// Merges events that Redis returned for a range with the pending appends and deletions.
    pub(super) fn merge_pending(
        &self,
        mut found: Vec<(EventId, Bytes)>,
        from: EventId,
        to: EventId,
        scan_order: ScanOrder,
        limit: usize,
    ) -> Vec<(EventId, Bytes)> {
        found.retain(|(id, _)| !self.deleted.contains(id));
        let appended = self.appended.range(from..=to).map(|(id, value)| (*id, value.clone()));
        match scan_order {
            ScanOrder::Ascending => found.extend(appended),
            ScanOrder::Descending => found.splice(0..0, appended.rev()).for_each(drop),
        }
        found.truncate(limit);
        found
    }

    /// Adds the commands for the pending writes.
    pub(super) fn push_write_commands(&self, keys: &Keys, writes: &mut CommandArgsBuffer) {
        let journal = keys.journal_key();
        for (id, value) in &self.appended {
            writes.push_command_for_script(&[
                b"XADD",
                &*journal,
                stream_entry_id(*id).as_bytes(),
                b"e",
                value,
            ]);
        }
        let deleted: Vec<String> = self.deleted.iter().map(|id| stream_entry_id(*id)).collect();
        writes.push_chunked_command_for_script(&[b"XDEL", &journal], 1, &deleted);
    }
}

/// Returns the stream entry id of an event.
pub(super) fn stream_entry_id(id: EventId) -> String {
    format!("{id}-0")
}

/// Returns the command that reads the events between two ids, both included.
pub(super) fn event_range_command(
    key: Vec<u8>,
    from: EventId,
    to: EventId,
    scan_order: ScanOrder,
    limit: usize,
) -> CommandArgs {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX).to_string();
    match scan_order {
        ScanOrder::Ascending => {
            args!["XRANGE", key, stream_entry_id(from), stream_entry_id(to), "COUNT", limit]
        }
        ScanOrder::Descending => {
            args!["XREVRANGE", key, stream_entry_id(to), stream_entry_id(from), "COUNT", limit]
        }
    }
}

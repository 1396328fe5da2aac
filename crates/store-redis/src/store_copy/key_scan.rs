//! Scans the names of keys for data without an index: outboxes, orphaned objects, and keys of other stores and
//! applications.

use std::collections::HashSet;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_store::error::TableResult;

use super::RedisStoreCopy;
use crate::connection::{CommandArgs, args};
use crate::keys::STORE_STATE_KEY;
use crate::outbox::orphaned_objects::{self, ObjectNames};
use crate::overlay::{decode_list, decode_strings};
use crate::reader::decode_server_time_micros;

/// A node is live if its last heartbeat is not older than this.
const LIVE_NODE_WINDOW: Duration = Duration::from_secs(60);
/// Number of keys that each SCAN looks through.
const SCAN_PAGE_SIZE: &str = "1000";

impl RedisStoreCopy {
    /// Calls `visit` with all keys of a pattern and a type except those of other stores, in batches. A key may occur
    /// twice.
    pub(super) fn for_each_key_of_this_store(
        &mut self,
        pattern: &str,
        key_type: Option<&str>,
        visit: &mut dyn FnMut(&mut Self, CommandArgs) -> TableResult<()>,
    ) -> TableResult<()> {
        let other_prefixes = self.other_store_prefixes()?;
        self.scan_keys(pattern, key_type, &mut |store, mut keys| {
            keys.retain(|key| !other_prefixes.iter().any(|other| key.starts_with(other)));
            if keys.is_empty() { Ok(()) } else { visit(store, keys) }
        })
    }

    /// Returns the prefixes of other stores among our keys: this store may have no prefix.
    fn other_store_prefixes(&mut self) -> TableResult<CommandArgs> {
        if let Some(prefixes) = &self.other_prefixes {
            return Ok(prefixes.clone());
        }
        let (own, mut other_prefixes) = (self.keys().with_prefix(""), CommandArgs::new());
        self.scan_keys(&format!("*{STORE_STATE_KEY}"), Some("string"), &mut |_, keys| {
            let prefixes = keys.iter().filter_map(|key| key.strip_suffix(STORE_STATE_KEY.as_bytes()));
            other_prefixes.extend(prefixes.filter(|prefix| *prefix != own).map(<[u8]>::to_vec));
            Ok(())
        })?;
        Ok(self.other_prefixes.insert(other_prefixes).clone())
    }

    fn scan_keys(
        &mut self,
        pattern: &str,
        key_type: Option<&str>,
        visit: &mut dyn FnMut(&mut Self, CommandArgs) -> TableResult<()>,
    ) -> TableResult<()> {
        let mut cursor = b"0".to_vec();
        loop {
            let mut scan =
                args!["SCAN", cursor, "MATCH", self.keys().scan_pattern(pattern), "COUNT", SCAN_PAGE_SIZE];
            if let Some(key_type) = key_type {
                scan.extend(args!["TYPE", key_type]);
            }
            let mut reply = decode_list(self.execute(scan)?)?;
            let keys = decode_strings(reply.pop().unwrap_or(redis::Value::Nil))?;
            cursor = decode_strings(redis::Value::Array(reply))?.pop().unwrap_or_else(|| b"0".to_vec());
            if !keys.is_empty() {
                visit(self, keys)?;
            }
            if cursor == b"0" {
                return Ok(());
            }
        }
    }

    /// Counts the outbox events that are not journaled yet: those in outboxes and those in flight.
    pub(super) fn count_pending_outbox_events(&mut self) -> TableResult<u64> {
        let (mut lists, mut events) = (HashSet::new(), 0);
        for pattern in ["*:events", "event.worker:*:event"] {
            self.for_each_key_of_this_store(pattern, Some("list"), &mut |store, keys| {
                let keys = keys.into_iter().filter(|key| lists.insert(key.clone()));
                let lengths: Vec<CommandArgs> = keys.map(|key| args!["LLEN", key]).collect();
                events += store.sum_replies(&lengths)?;
                Ok(())
            })?;
        }
        Ok(events)
    }

    /// Finds orphaned objects: no node would journal their events.
    pub(super) fn find_orphaned_objects(&mut self) -> TableResult<ObjectNames> {
        let queued = decode_strings(self.execute(args![
            "LRANGE",
            self.keys().with_prefix("objects.with.events"),
            "0",
            "-1"
        ])?)?;
        let (queued, mut orphaned_objects) = (HashSet::<Vec<u8>>::from_iter(queued), ObjectNames::new());
        self.for_each_key_of_this_store(orphaned_objects::OUTBOX_KEY_PATTERN, None, &mut |store, keys| {
            let objects = keys
                .iter()
                .filter_map(|key| orphaned_objects::object_of_outbox_key(store.keys().without_prefix(key)?));
            let unqueued: ObjectNames = objects.filter(|object| !queued.contains(object)).collect();
            for command in orphaned_objects::find_orphaned_objects_commands(store.keys(), &unqueued) {
                orphaned_objects.extend(decode_strings(store.execute(command)?)?);
            }
            Ok(())
        })?;
        Ok(orphaned_objects)
    }

    /// Counts the set-aside entries.
    pub(super) fn count_set_aside(&mut self) -> TableResult<u64> {
        self.sum_replies(&[args!["LLEN", self.keys().with_prefix("events.set.aside")]])
    }

    /// Lists nodes with a heartbeat within the last minute, by the clock of the server.
    pub(super) fn list_live_node_names(&mut self) -> TableResult<Vec<String>> {
        let now = Timestamp::from_micros(decode_server_time_micros(self.execute(args!["TIME"])?)?);
        let nodes = self.overlay().read_all_nodes(false)?;
        let live_nodes = nodes
            .into_iter()
            .filter(|node| !node.has_left_or_died && node.last_heartbeat_at > now.minus(LIVE_NODE_WINDOW));
        Ok(live_nodes.map(|node| node.name).collect())
    }

    /// Finds a key with the name of a store's key, where there is no store. Outbox keys do not count: producers may write them
    /// before there is a store.
    pub(super) fn find_key_named_like_store_key(&mut self) -> TableResult<Option<String>> {
        let mut foreign_key = None;
        self.for_each_key_of_this_store("*", None, &mut |store, keys| {
            let is_foreign = |key: &Vec<u8>| {
                let name = store.keys().without_prefix(key).map(String::from_utf8_lossy);
                name.is_some_and(|name| is_store_key(&name))
            };
            foreign_key = foreign_key.take().or_else(|| keys.into_iter().find(is_foreign));
            Ok(())
        })?;
        Ok(foreign_key.map(|key| String::from_utf8_lossy(&key).into_owned()))
    }
}

/// Returns whether only a store writes keys with this name. The write lock does not count: it may exist before the store.
fn is_store_key(name: &str) -> bool {
    const STORE_KEY_NAMES: [&str; 4] =
        ["next.event.id", "events.set.aside", "sync_tasks_priority_queue", "sync_tasks_sequence"];
    const STORE_KEY_PREFIXES: [&str; 4] = ["pointsman:", "event.worker:", "sync_tasks#", "sync_tasks_index:"];
    const STORE_KEY_SUFFIXES: [&str; 2] = [":last.event.id", ":event.worker"];
    !name.starts_with("pointsman:write-lock")
        && (STORE_KEY_NAMES.contains(&name)
            || STORE_KEY_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || STORE_KEY_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outbox_keys_do_not_count_as_a_store() {
        for name in
            ["order:1:events", "objects.with.events", "session:1", "pointsman:write-lock", "sync_tasks"]
        {
            assert!(!is_store_key(name), "{name}");
        }
        for name in ["pointsman:store-state", "order:1:last.event.id", "next.event.id", "sync_tasks#a:logs"] {
            assert!(is_store_key(name), "{name}");
        }
    }
}

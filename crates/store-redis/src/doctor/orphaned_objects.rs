//! Checks for orphaned objects: they have events that no worker processes.

use std::collections::HashSet;

use pointsman_store::finding::Finding;
use redis::RedisResult;

use super::activity::{MAX_SCANNED_KEYS, SCAN_PAGE_SIZE, format_heading_and_items, is_wrong_type_error};
use super::{CheckResult, Doctor, escape_pattern};
use crate::keys::Keys;
use crate::outbox::orphaned_objects::{
    MAX_OBJECTS_PER_ENQUEUE_COMMAND, OUTBOX_KEY_PATTERN, ObjectNames, enqueue_objects_command,
    find_orphaned_objects_commands, object_of_outbox_key,
};

type QueuedObjects = HashSet<Vec<u8>>;

impl Doctor {
    pub(super) async fn check_orphaned_objects(&self) -> CheckResult {
        let orphaned = match self.find_orphaned_objects().await {
            // A key of the wrong type is reported by another check.
            Err(error) if is_wrong_type_error(&error) => return Ok(vec![]),
            orphaned => orphaned?,
        };
        if orphaned.is_empty() {
            return Ok(vec![Finding::ok("orphaned", "no events")]);
        }
        let (redis_cli, keys) =
            (self.endpoint.redis_cli_command().await, Keys::new(self.endpoint.key_prefix()));
        Ok(vec![orphaned_objects_finding(&orphaned, &enqueue_objects_command(&redis_cli, &keys, &orphaned))])
    }

    async fn find_orphaned_objects(&self) -> RedisResult<ObjectNames> {
        let found = self.scan_for_orphaned_objects(&self.read_queued_objects().await?).await?;
        match found.is_empty() {
            true => Ok(found),
            // They may have been queued or claimed meanwhile.
            false => self.filter_orphaned(&found, &self.read_queued_objects().await?).await,
        }
    }

    async fn read_queued_objects(&self) -> RedisResult<QueuedObjects> {
        let (keys, mut connection) = (Keys::new(self.endpoint.key_prefix()), self.connection());
        let mut names = QueuedObjects::new();
        for first in (0..MAX_SCANNED_KEYS).step_by(SCAN_PAGE_SIZE) {
            let mut range = redis::cmd("LRANGE");
            range.arg(keys.with_prefix("objects.with.events")).arg(first).arg(first + SCAN_PAGE_SIZE - 1);
            let page: Vec<Vec<u8>> = range.query_async(&mut connection).await?;
            let is_last = page.len() < SCAN_PAGE_SIZE;
            names.extend(page);
            if is_last {
                break;
            }
        }
        Ok(names)
    }

    async fn scan_for_orphaned_objects(&self, queued: &QueuedObjects) -> RedisResult<ObjectNames> {
        let (keys, mut connection) = (Keys::new(self.endpoint.key_prefix()), self.connection());
        let pattern = format!("{}{OUTBOX_KEY_PATTERN}", escape_pattern(self.endpoint.key_prefix()));
        let (mut cursor, mut scanned, mut found) = (0_u64, 0, ObjectNames::new());
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(SCAN_PAGE_SIZE);
            let (next, page): (u64, Vec<Vec<u8>>) = scan.query_async(&mut connection).await?;
            let objects =
                page.iter().filter_map(|key| object_of_outbox_key(keys.without_prefix(key)?)).collect();
            found.append(&mut self.filter_orphaned(&objects, queued).await?);
            (cursor, scanned) = (next, scanned + SCAN_PAGE_SIZE);
            if cursor == 0 || scanned >= MAX_SCANNED_KEYS {
                return Ok(found);
            }
        }
    }

    /// Returns the objects that are not queued and have events that no worker processes.
    async fn filter_orphaned(
        &self,
        objects: &ObjectNames,
        queued: &QueuedObjects,
    ) -> RedisResult<ObjectNames> {
        let keys = Keys::new(self.endpoint.key_prefix());
        let unqueued = objects.iter().filter(|object| !queued.contains(*object)).cloned().collect();
        let mut orphaned = ObjectNames::new();
        for args in find_orphaned_objects_commands(&keys, &unqueued) {
            let mut command = redis::Cmd::new();
            command.arg(args);
            orphaned.extend(command.query_async::<Vec<Vec<u8>>>(&mut self.connection()).await?);
        }
        Ok(orphaned)
    }
}

fn orphaned_objects_finding(orphaned: &ObjectNames, enqueue_command: &str) -> Finding {
    let names: Vec<String> = orphaned.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let count = match names.len() {
        1 => "1 object has events that no node reads".into(),
        count => format!("{count} objects have events that no node reads"),
    };
    let run_again = if names.len() > MAX_OBJECTS_PER_ENQUEUE_COMMAND { ", and run doctor again" } else { "" };
    Finding::warning("orphaned", format_heading_and_items(&count, &names)).with_advice(format!(
        "Producers must also push the object's name to objects.with.events. If these are events for Pointsman, queue the \
         objects{run_again}: {enqueue_command}"
    ))
}

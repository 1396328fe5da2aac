//! Checks of the activity on a store: nodes, outbox queue, event workers and set-aside entries.

use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_core::store::NodeView;
use pointsman_store::finding::{Finding, format_age, format_first_items};
use redis::{RedisError, RedisResult};
use serde::Deserialize;

use super::{CheckResult, Doctor, escape_pattern, run_check};
use crate::connect::shell_quote;
use crate::error::error_codes;
use crate::keys::Keys;
use crate::reader_pool::ReaderPool;
use crate::tables::outbox::MAX_SET_ASIDE_ENTRIES;

/// A node whose last heartbeat is older counts as silent, in seconds.
const MAX_HEARTBEAT_AGE_SECS: f64 = 30.0;
/// Maximum number of listed items; the rest is counted.
const MAX_LISTED_ITEMS: usize = 3;
/// Maximum number of keys that a check scans, in pages.
pub(super) const MAX_SCANNED_KEYS: usize = 1_000_000;
pub(super) const SCAN_PAGE_SIZE: usize = 5_000;
/// Maximum number of displayed characters of a reason.
const MAX_REASON_CHARS: usize = 160;
const SET_ASIDE_REASONS_LUA: &str = include_str!("../lua/set_aside_reasons.lua");

/// Header of a set-aside entry.
#[derive(Deserialize)]
struct SetAsideHeader {
    object: String,
    reason: String,
    at: String,
}

impl Doctor {
    pub(super) async fn check_activity(&self, findings: &mut Vec<Finding>) {
        let mut live_nodes = 0;
        run_check("nodes", findings, async {
            let (found, count) = self.check_nodes().await?;
            live_nodes = count;
            Ok(found)
        })
        .await;
        run_check("outbox", findings, self.check_outbox_queue(live_nodes)).await;
        run_check("event workers", findings, self.check_outbox_workers()).await;
        run_check("orphaned", findings, self.check_orphaned_objects()).await;
        run_check("set aside", findings, self.check_set_aside_entries()).await;
    }

    /// Checks how many objects wait in `objects.with.events` for a node.
    async fn check_outbox_queue(&self, live_nodes: usize) -> CheckResult {
        let waiting = match self.read_list_length("outbox", "objects.with.events").await? {
            Ok(waiting) => waiting,
            Err(finding) => return Ok(vec![finding]),
        };
        let found = match waiting {
            0 => "empty".into(),
            1 => "1 object has events".into(),
            _ => format!("{waiting} objects have events, or had some when they were queued"),
        };
        Ok(vec![match (waiting, live_nodes) {
            (0, _) | (_, 1..) => Finding::ok("outbox", found),
            (_, 0) => Finding::warning("outbox", found).with_advice("Start a node: it journals them."),
        }])
    }

    /// Reads the length of a list; returns a finding of the named check if the key has another type.
    async fn read_list_length(
        &self,
        check: &'static str,
        key_name: &str,
    ) -> RedisResult<Result<u64, Finding>> {
        let key = Keys::new(self.endpoint.key_prefix()).with_prefix(key_name);
        match redis::cmd("LLEN").arg(&key).query_async(&mut self.connection()).await {
            Err(error) if is_wrong_type_error(&error) => {
                let key = String::from_utf8_lossy(&key);
                Ok(Err(Finding::fault(check, format!("{key} is not a list: another application wrote it"))
                    .with_advice("Rename it. Until then no pushed event is journaled.")))
            }
            length => length.map(Ok),
        }
    }

    /// Checks the nodes; also returns the number of live ones.
    async fn check_nodes(&self) -> RedisResult<(Vec<Finding>, usize)> {
        let state_key = Keys::new(self.endpoint.key_prefix()).store_state_key();
        let exists: bool = redis::cmd("EXISTS").arg(state_key).query_async(&mut self.connection()).await?;
        if !exists {
            return Ok((vec![], 0));
        }
        let readers = ReaderPool::new(Arc::new(self.endpoint.clone()));
        let read = readers
            .read_without_snapshot(|reader| {
                Ok((reader.overlay.read_recent_nodes()?, reader.read_server_time()?))
            })
            .await;
        readers.close();
        Ok(match read {
            Ok((nodes, now)) => {
                let (finding, live) = nodes_finding(&nodes, now);
                (vec![finding], live)
            }
            Err(error) => (vec![Finding::fault("nodes", format!("could not be read: {error}"))], 0),
        })
    }

    /// Checks for event workers that own an object and have no heartbeat.
    async fn check_outbox_workers(&self) -> CheckResult {
        let (keys, mut connection) = (Keys::new(self.endpoint.key_prefix()), self.connection());
        let start = keys.with_prefix("event.worker:");
        let pattern = format!("{}event.worker:*:object", escape_pattern(self.endpoint.key_prefix()));
        let (mut cursor, mut scanned, mut dead) = (0_u64, 0, Vec::new());
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor)
                .arg("MATCH")
                .arg(&pattern)
                .arg("COUNT")
                .arg(SCAN_PAGE_SIZE)
                .arg("TYPE")
                .arg("list");
            let (next, page): (u64, Vec<Vec<u8>>) = scan.query_async(&mut connection).await?;
            for key in page {
                let Some(worker) = key.strip_prefix(&*start).and_then(|rest| rest.strip_suffix(b":object"))
                else {
                    continue;
                };
                let mut commands = redis::pipe();
                commands.cmd("EXISTS").arg([&*start, worker, b":heartbeat"].concat());
                commands.cmd("LINDEX").arg(&key).arg(0);
                let (is_alive, object): (bool, Option<Vec<u8>>) =
                    commands.query_async(&mut connection).await?;
                if let (false, Some(object)) = (is_alive, object) {
                    let to_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    dead.push(format!("{} owns {}", to_text(worker), to_text(&object)));
                }
            }
            (cursor, scanned) = (next, scanned + SCAN_PAGE_SIZE);
            if cursor == 0 || scanned >= MAX_SCANNED_KEYS {
                return Ok(vec![outbox_workers_finding(&dead)]);
            }
        }
    }

    /// Checks for outbox entries that were set aside.
    async fn check_set_aside_entries(&self) -> CheckResult {
        let count = match self.read_list_length("set aside", "events.set.aside").await? {
            Ok(0) => return Ok(vec![Finding::ok("set aside", "nothing")]),
            Ok(count) => count,
            Err(finding) => return Ok(vec![finding]),
        };
        let key = Keys::new(self.endpoint.key_prefix()).with_prefix("events.set.aside");
        let mut newest = redis::cmd("EVAL_RO");
        newest.arg(SET_ASIDE_REASONS_LUA).arg(1).arg(&key).arg(1);
        let newest: Vec<Vec<u8>> = newest.query_async(&mut self.connection()).await?;
        let newest = newest.first().and_then(|header| serde_json::from_slice(header).ok());
        let (command, key) = (self.endpoint.redis_cli_command().await, shell_quote(&key));
        let advice = format!(
            "List them: {command} LRANGE {key} 0 9. Each has a line with the reason, followed by the entry. \
             To delete them: {command} DEL {key}"
        );
        Ok(vec![Finding::warning("set aside", describe_set_aside(count, newest)).with_advice(advice)])
    }
}

/// Returns whether an error means that a key has the wrong type.
pub(super) fn is_wrong_type_error(error: &RedisError) -> bool {
    error_codes(error).iter().any(|code| code == "WRONGTYPE")
}

fn describe_set_aside(count: u64, newest: Option<SetAsideHeader>) -> String {
    let things = if count == 1 { "outbox entry is not an event" } else { "outbox entries are not events" };
    let deleted = if count >= MAX_SET_ASIDE_ENTRIES { "; older ones were deleted" } else { "" };
    let newest = newest.map(|SetAsideHeader { object, reason, at }| {
        let seconds = at.split('.').next().unwrap_or_default();
        let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
        format!("; the newest, for {object} at {seconds}: {reason}")
    });
    format!("{count} {things}{deleted}{}", newest.unwrap_or_default())
}

/// Returns the finding about nodes that have not left, and how many of them are live.
fn nodes_finding(nodes: &[NodeView], now: Timestamp) -> (Finding, usize) {
    let present = nodes.iter().filter(|node| !node.has_left_or_died);
    let silence = |node: &NodeView| now.duration_since(node.last_heartbeat_at).as_secs_f64();
    let (silent, live): (Vec<_>, Vec<_>) = present.partition(|node| silence(node) > MAX_HEARTBEAT_AGE_SECS);
    let names: Vec<String> = live.iter().map(|node| node.name.clone()).collect();
    let live_text = match live.len() {
        0 => "none is running".into(),
        count => format_heading_and_items(&format!("{count} live"), &names),
    };
    let finding = match silent.is_empty() {
        true => Finding::ok("nodes", live_text),
        false => {
            let names: Vec<String> = silent
                .iter()
                .map(|node| format!("{} for {}", node.name, format_age(silence(node))))
                .collect();
            Finding::warning("nodes", format!("{live_text}; {}", format_heading_and_items("silent", &names))).with_advice(
                "If the node was killed, other nodes take over its tasks, or the next node that starts. If it is running, check its \
                 log and its clock.",
            )
        }
    };
    (finding, live.len())
}

fn outbox_workers_finding(dead_owners: &[String]) -> Finding {
    match dead_owners.len() {
        0 => Finding::ok("event workers", "no dead worker owns an object"),
        count => {
            let found = format_heading_and_items(&format!("{count} without a heartbeat"), dead_owners);
            Finding::warning("event workers", found).with_advice(
                "A node takes over their objects within a minute. If no node is running, start one.",
            )
        }
    }
}

/// Formats a heading and the first items of a list.
pub(super) fn format_heading_and_items(heading: &str, items: &[String]) -> String {
    format!("{heading}: {}", format_first_items(items, MAX_LISTED_ITEMS))
}

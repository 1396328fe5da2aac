//! Checks whether the keys at the endpoint belong to a store.

use pointsman_store::finding::Finding;
use redis::{RedisResult, from_redis_value};

use super::{CheckResult, Doctor, escape_pattern};
use crate::error::OpenError;
use crate::keys::{Keys, STORE_STATE_KEY};
use crate::{LAYOUT_TEXT_NAME, unsupported_layout_error};

/// Key of the named texts, which stores of every layout have.
const NAMED_TEXTS_KEY: &str = "pointsman:texts";
/// Keys of a store and their types: another type means that another application uses the name.
const EXPECTED_KEY_TYPES: [(&str, &str); 6] = [
    (STORE_STATE_KEY, "string"),
    (NAMED_TEXTS_KEY, "hash"),
    ("pointsman:journal", "stream"),
    ("objects.with.events", "list"),
    ("next.event.id", "string"),
    ("sync_tasks_priority_queue", "zset"),
];
/// Maximum number of scanned keys, read in pages.
const MAX_SCANNED_KEYS: usize = 20_000;
const SCAN_PAGE_SIZE: usize = 1000;

impl Doctor {
    pub(super) async fn check_keys(&self) -> CheckResult {
        let keys = Keys::new(self.endpoint.key_prefix());
        let mut commands = redis::pipe();
        EXPECTED_KEY_TYPES.iter().for_each(|(name, _)| {
            commands.cmd("TYPE").arg(keys.with_prefix(name));
        });
        let types: Vec<String> = commands.query_async(&mut self.connection()).await?;
        let found = EXPECTED_KEY_TYPES.iter().zip(&types).filter(|(_, found)| *found != "none");
        let (ours, foreign): (Vec<_>, Vec<_>) = found.partition(|((_, expected), found)| expected == found);
        let prefix = self.endpoint.key_prefix();
        if let Some(((name, expected), found)) = foreign.first() {
            let found = format!(
                "{prefix}{name} is a {found}, and in a store it is a {expected}: another application wrote it"
            );
            return Ok(vec![Finding::fault("keys", found).with_advice(USE_ANOTHER_DATABASE_ADVICE)]);
        }
        if ours.iter().any(|((name, _), _)| *name == STORE_STATE_KEY) {
            return Ok(vec![Finding::ok(
                "keys",
                format!("a store is there, at {}", self.endpoint.display_location()),
            )]);
        }
        if ours.iter().any(|((name, _), _)| *name == NAMED_TEXTS_KEY)
            && let Some(error) = self.find_layout_error().await?
        {
            return Ok(vec![Finding::from_open_error("keys", &error)]);
        }
        Ok(vec![match self.find_key_of_another_application().await? {
            None => Finding::ok("keys", "there is no store yet; the first node creates it"),
            Some(key) if is_heartbeat_key(key.strip_prefix(prefix).unwrap_or(&key)) => Finding::fault(
                "keys",
                "nodes are running, but the store is gone, as after FLUSHALL or a start without the append-only \
                 file",
            )
            .with_advice("Restore a backup of Redis, or restart the nodes: they begin with an empty store."),
            Some(key) => Finding::warning(
                "keys",
                format!("there is no store yet, but there are keys of another application, for instance {key:?}"),
            )
            .with_advice(USE_ANOTHER_DATABASE_ADVICE),
        }])
    }

    /// Returns an error if the stored layout version is one that this version of Pointsman does not support.
    async fn find_layout_error(&self) -> RedisResult<Option<OpenError>> {
        let mut read = redis::cmd("HGET");
        read.arg(Keys::new(self.endpoint.key_prefix()).with_prefix(NAMED_TEXTS_KEY)).arg(LAYOUT_TEXT_NAME);
        let layout: Option<String> = read.query_async(&mut self.connection()).await?;
        let layout = layout.and_then(|layout| layout.parse().ok());
        Ok(layout.and_then(|layout| unsupported_layout_error(layout, &self.endpoint.display_location())))
    }

    /// Finds a key with our prefix that no producer writes; prefers the heartbeat of a running node.
    async fn find_key_of_another_application(&self) -> RedisResult<Option<String>> {
        let (prefix, mut connection) = (self.endpoint.key_prefix(), self.connection());
        let (mut cursor, mut scanned, mut foreign_key) = (0_u64, 0, None);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor)
                .arg("MATCH")
                .arg(format!("{}*", escape_pattern(prefix)))
                .arg("COUNT")
                .arg(SCAN_PAGE_SIZE);
            let (next, page): (u64, Vec<redis::Value>) = scan.query_async(&mut connection).await?;
            let names = page.into_iter().filter_map(|key| from_redis_value::<Vec<u8>>(key).ok());
            for key in names.map(|key| String::from_utf8_lossy(&key).into_owned()) {
                match key.strip_prefix(prefix).unwrap_or(&key) {
                    name if is_heartbeat_key(name) => return Ok(Some(key)),
                    name if is_outbox_key(name) => {}
                    _ => foreign_key = foreign_key.or(Some(key)),
                }
            }
            (cursor, scanned) = (next, scanned + SCAN_PAGE_SIZE);
            if cursor == 0 || scanned >= MAX_SCANNED_KEYS {
                return Ok(foreign_key);
            }
        }
    }
}

const USE_ANOTHER_DATABASE_ADVICE: &str = "Give the store a database of its own, as in redis://host:6379/1, or a prefix that no other application \
                         uses, as in ?prefix=pointsman:";

/// Returns whether producers write a key when they push events, which they may do before there is a store.
fn is_outbox_key(key: &str) -> bool {
    key == "objects.with.events" || key.ends_with(":events")
}

/// Returns whether a key is the heartbeat of an event worker.
fn is_heartbeat_key(key: &str) -> bool {
    key.starts_with("event.worker:") && key.ends_with(":heartbeat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_patterns_match_literally() {
        assert_eq!(escape_pattern("{pointsman}:"), "{pointsman}:");
        assert_eq!(escape_pattern("a*b[c]?\\"), "a\\*b\\[c\\]\\?\\\\");
    }

    #[test]
    fn outbox_keys_are_not_foreign() {
        assert!(is_outbox_key("objects.with.events") && is_outbox_key("user/1:events"));
        assert!(!is_outbox_key("session:1") && !is_outbox_key("events"));
    }
}

//! Checks of write latency and of notifications.

use std::time::{Duration, Instant};

use futures::StreamExt;
use pointsman_store::finding::Finding;
use redis::RedisResult;
use uuid::Uuid;

use super::{CheckResult, Doctor};
use crate::error::{error_codes, error_reason};

/// A slower write is a warning.
const SLOW_WRITE: Duration = Duration::from_millis(50);
/// Time to live of the test key, in milliseconds.
const TEST_KEY_TTL_MS: u32 = 10_000;
const PROBE_COUNT: u32 = 5;
/// Timeout for receiving a published message.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// A script that writes one key: commits write with a script, too.
const WRITE_LUA: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])";

impl Doctor {
    pub(super) async fn check_writes(&self) -> CheckResult {
        let key = self.unique_test_name();
        let written = self.measure_write_latency(&key).await;
        let removed = redis::cmd("UNLINK").arg(&key).exec_async(&mut self.connection()).await;
        let finding = match written.and_then(|took| removed.map(|()| took)) {
            Ok(took) => {
                let found = format!("acknowledged after {:.1} ms", took.as_secs_f64() * 1000.0);
                match took > SLOW_WRITE {
                    true => Finding::warning("writing", found).with_advice(
                        "Each commit takes that long. Give Redis a faster disk, or one with less other load.",
                    ),
                    false => Finding::ok("writing", found),
                }
            }
            Err(error) => {
                let advice = match error_codes(&error).first().map(String::as_str) {
                    Some("OOM") => "Raise maxmemory, or find what else uses the memory.",
                    Some("MISCONF") => "Check the log of Redis, and whether its disk is full.",
                    Some("NOREPLICAS") => {
                        "Find out why replicas are missing, or lower min-replicas-to-write."
                    }
                    Some("NOPERM") => {
                        "Give the user the permissions to run scripts and to write all keys of the store."
                    }
                    Some(_) | None => "Check the log of Redis.",
                };
                Finding::fault("writing", format!("refused: {}", error_reason(&error))).with_advice(advice)
            }
        };
        Ok(vec![finding])
    }

    /// Measures how long the fastest of several writes takes.
    async fn measure_write_latency(&self, key: &str) -> RedisResult<Duration> {
        let mut connection = self.connection();
        let mut shortest = Duration::MAX;
        for round in 0..PROBE_COUNT {
            let begun = Instant::now();
            let mut write = redis::cmd("EVAL");
            write
                .arg(WRITE_LUA)
                .arg(1)
                .arg(key)
                .arg(round)
                .arg(TEST_KEY_TTL_MS)
                .exec_async(&mut connection)
                .await?;
            shortest = shortest.min(begun.elapsed());
        }
        Ok(shortest)
    }

    /// Checks that published messages are received.
    pub(super) async fn check_notifications(&self) -> CheckResult {
        let finding = match self.receive_published_message().await {
            Ok(()) => Finding::ok("listening", "nodes can notify each other"),
            Err(problem) => Finding::warning("listening", problem).with_advice(
                "Until then nodes find new work by polling. Give the user the permissions to PUBLISH and \
                         SUBSCRIBE (ACL SETUSER … &* +@pubsub).",
            ),
        };
        Ok(vec![finding])
    }

    async fn receive_published_message(&self) -> Result<(), String> {
        let (channel, describe_error) = (self.unique_test_name(), |error| error_reason(&error));
        let mut listener = self.endpoint.connect_for_listening().await.map_err(|error| error.to_string())?;
        listener.subscribe(&channel).await.map_err(describe_error)?;
        let published = redis::cmd("PUBLISH").arg(&channel).arg("").exec_async(&mut self.connection()).await;
        published.map_err(describe_error)?;
        let received = tokio::time::timeout(MESSAGE_TIMEOUT, listener.on_message().next()).await;
        match received.ok().flatten() {
            Some(_) => Ok(()),
            None => {
                Err(format!("a published message was not received within {} s", MESSAGE_TIMEOUT.as_secs()))
            }
        }
    }

    /// Returns a unique name for a test key or a test channel.
    fn unique_test_name(&self) -> String {
        format!("{}pointsman:doctor:{}", self.endpoint.key_prefix(), Uuid::new_v4().simple())
    }
}

//! The event workers of document 001: they claim objects with events and have them journaled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_core::ErrorChain;
use pointsman_core::outage::OutageTracker;
use pointsman_store::tables::ReadSet;
use pointsman_store::{JobPosition, JobRequest, Writer, WriterState};
use redis::aio::MultiplexedConnection;
use tokio::time::sleep;

use crate::connect::Endpoint;
use crate::connection::{CommandArgs, args, to_arg};
use crate::error::{error_codes, error_reason};
use crate::keys::Keys;
use crate::script;
use crate::tables::RedisTables;
use crate::tables::outbox::{WORKER_HEARTBEAT_TTL_MS, requeue_objects_of_dead_workers_command};

/// Maximum number of queued names read per claim; names of objects that another live worker owns are dropped from the
/// queue.
const MAX_NAMES_PER_CLAIM: u64 = 1_000;
/// Time to wait for a queued object before heartbeats are renewed.
const QUEUE_WAIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Delay after a failure.
const RETRY_DELAY: Duration = Duration::from_millis(300);
/// Time over which a scan of all keys for objects of dead workers is spread.
const DEAD_WORKER_SCAN_DURATION: Duration = Duration::from_secs(30);
/// Number of keys that each SCAN looks through.
const SCAN_PAGE_SIZE: u64 = 1_000;

/// Objects that the workers of this node own, as worker and object name.
type OwnedObjects = Vec<(String, Vec<u8>)>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The event workers of this node, which share one connection.
struct OutboxDrainer {
    endpoint: Arc<Endpoint>,
    keys: Keys,
    writer: Writer<RedisTables>,
    worker_names: Vec<String>,
    connection: Option<MultiplexedConnection>,
}

/// Drains the outbox as long as the store is open.
pub(crate) async fn drain_outbox(endpoint: Arc<Endpoint>, writer: Writer<RedisTables>) {
    let keys = Keys::new(endpoint.key_prefix());
    let mut drainer = OutboxDrainer { keys, endpoint, writer, worker_names: vec![], connection: None };
    let mut outage = OutageTracker::default();
    loop {
        let (drained, now) = (drainer.drain_once().await, Instant::now());
        match drained {
            Ok(()) if outage.record_success(now).is_some() => {
                tracing::info!("draining the outbox works again")
            }
            Ok(()) => {}
            Err(error) => {
                drainer.connection = None;
                if outage.record_failure(now).is_some() {
                    let error =
                        describe_drain_error(&error, &drainer.keys.with_prefix("objects.with.events"));
                    tracing::warn!(
                        error,
                        "could not drain the outbox; pushed events wait; run `pointsman doctor` if it persists"
                    );
                }
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

impl OutboxDrainer {
    /// Waits for objects with events and has them journaled.
    async fn drain_once(&mut self) -> Result<(), BoxError> {
        if self.worker_names.is_empty() {
            self.worker_names =
                self.writer.run_in_transaction(|txn| Ok(txn.tables.outbox_worker_names())).await?;
        }
        let owned = self.claim_objects().await?;
        if owned.is_empty() {
            return self.wait_for_queued_object().await;
        }
        let job = JobRequest {
            position: JobPosition::First,
            input: owned,
            add_to_read_set: add_owned_objects_to_read_set,
        };
        Ok(self.writer.run_job(job, |_, _| Ok(())).await?)
    }

    /// Waits for a queued object without removing it: claiming removes it and sets the owner in one step.
    async fn wait_for_queued_object(&mut self) -> Result<(), BoxError> {
        let queue = self.keys.with_prefix("objects.with.events");
        match self
            .execute(args![
                "BLMOVE",
                &queue,
                &queue,
                "RIGHT",
                "RIGHT",
                QUEUE_WAIT_TIMEOUT.as_secs().to_string()
            ])
            .await
        {
            // A server without free memory refuses BLMOVE, but not the scripts that drain the outbox.
            Err(error) if is_out_of_memory_error(&error) => sleep(QUEUE_WAIT_TIMEOUT).await,
            reply => drop(reply?),
        }
        Ok(())
    }

    /// Renews the heartbeats of the workers and claims objects for them.
    async fn claim_objects(&mut self) -> Result<OwnedObjects, BoxError> {
        let mut arguments = args![
            self.keys.with_prefix(""),
            WORKER_HEARTBEAT_TTL_MS.to_string(),
            MAX_NAMES_PER_CLAIM.to_string()
        ];
        arguments.extend(self.worker_names.iter().map(to_arg));
        let claimed = self
            .execute(
                script::CLAIM_OBJECTS
                    .build_evalsha_command(vec![self.keys.with_prefix("objects.with.events")], arguments),
            )
            .await?;
        let claimed: Vec<Vec<u8>> = redis::from_redis_value(claimed)?;
        let mut owned = Vec::with_capacity(claimed.len() / 2);
        let mut claimed = claimed.into_iter();
        while let (Some(worker), Some(object)) = (claimed.next(), claimed.next()) {
            owned.push((String::from_utf8(worker)?, object));
        }
        Ok(owned)
    }

    async fn execute(&mut self, args: CommandArgs) -> Result<redis::Value, BoxError> {
        let connection = match &mut self.connection {
            Some(open) => open,
            None => self.connection.insert(connect_with_scripts(&self.endpoint).await?),
        };
        Ok(redis_command(&args).query_async(connection).await?)
    }
}

/// Adds owned objects to the read set: the transaction then journals their entries before its jobs run.
fn add_owned_objects_to_read_set(owned: &OwnedObjects, _: &mut WriterState, read_set: &mut ReadSet) {
    read_set.claimed_outbox_objects.extend(owned.iter().cloned());
}

/// Scans all keys for objects of dead workers, slowly and repeatedly, and requeues them, as long as the store is open.
pub(crate) async fn requeue_objects_of_dead_workers(endpoint: Arc<Endpoint>) {
    loop {
        if let Err(error) = requeue_objects_of_dead_workers_once(&endpoint).await {
            tracing::debug!(
                error = %ErrorChain(&*error),
                "could not scan for objects of dead event workers; retrying, their events stay in the outbox until then"
            );
            sleep(RETRY_DELAY).await;
        }
    }
}

async fn requeue_objects_of_dead_workers_once(endpoint: &Endpoint) -> Result<(), BoxError> {
    let keys = Keys::new(endpoint.key_prefix());
    let mut connection = connect_with_scripts(endpoint).await?;
    let key_count: u64 = redis::cmd("DBSIZE").query_async(&mut connection).await?;
    let pause = DEAD_WORKER_SCAN_DURATION / u32::try_from(key_count / SCAN_PAGE_SIZE + 1).unwrap_or(u32::MAX);
    // Matches `event.worker:WORKER:object` and `OBJ:event.worker`.
    let pattern = keys.scan_pattern("*event.worker*");
    let mut cursor = b"0".to_vec();
    loop {
        let scan = args!["SCAN", &cursor, "MATCH", &pattern, "COUNT", SCAN_PAGE_SIZE.to_string()];
        let (next, found): (Vec<u8>, Vec<Vec<u8>>) =
            redis_command(&scan).query_async(&mut connection).await?;
        if let Some(args) = requeue_command_from_keys(&keys, &found) {
            let requeued: u64 = redis_command(&args).query_async(&mut connection).await?;
            if requeued > 0 {
                tracing::info!(
                    object_count = requeued,
                    "requeued outbox objects of event workers without a heartbeat, whose nodes died or lost Redis; live nodes journal their events"
                );
            }
        }
        sleep(pause).await;
        if next == b"0" {
            return Ok(());
        }
        cursor = next;
    }
}

/// Returns the command that requeues objects of dead workers, with the workers and objects that these keys name; `None` if
/// they name none.
fn requeue_command_from_keys(keys: &Keys, found: &[Vec<u8>]) -> Option<CommandArgs> {
    let names = || found.iter().filter_map(|key| keys.without_prefix(key));
    let worker =
        |name: &'_ [u8]| Some(name.strip_prefix(b"event.worker:")?.strip_suffix(b":object")?.to_vec());
    let workers: CommandArgs = names().filter_map(worker).collect();
    let objects: CommandArgs =
        names().filter_map(|name| name.strip_suffix(b":event.worker")).map(to_arg).collect();
    let found_any = !workers.is_empty() || !objects.is_empty();
    found_any.then(|| requeue_objects_of_dead_workers_command(keys, &workers, &objects))
}

/// Connects and loads the scripts.
async fn connect_with_scripts(endpoint: &Endpoint) -> Result<MultiplexedConnection, BoxError> {
    let mut connection = endpoint.connect().await?;
    for script in script::ALL_SCRIPTS {
        let _: String = redis_command(&script.build_load_command()).query_async(&mut connection).await?;
    }
    Ok(connection)
}

fn redis_command(args: &CommandArgs) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    args.iter().for_each(|arg| {
        command.arg(arg);
    });
    command
}

/// Describes for an operator why the outbox cannot be drained.
fn describe_drain_error(error: &BoxError, queue: &[u8]) -> String {
    match error.downcast_ref() {
        // Only the queue could be a key of another application.
        Some(error) if error_codes(error).iter().any(|code| code == "WRONGTYPE") => {
            let queue = String::from_utf8_lossy(queue);
            format!("{queue} is not a list; rename the key, another application wrote it")
        }
        Some(error) => error_reason(error),
        None => error.to_string(),
    }
}

fn is_out_of_memory_error(error: &BoxError) -> bool {
    error.downcast_ref().is_some_and(|error| error_codes(error).iter().any(|code| code == "OOM"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_type_error_names_the_queue_key() {
        let describe = |reply: &str| {
            let error_reply = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
            describe_drain_error(&error_reply.extract_error().unwrap_err().into(), b"p:objects.with.events")
        };
        let named = "p:objects.with.events is not a list; rename the key, another application wrote it";
        assert_eq!(describe("WRONGTYPE Operation against a key script: 1f, on @user_script:62."), named);
        assert_eq!(
            describe("LOADING Redis is loading the dataset in memory"),
            "LOADING Redis is loading the dataset in memory"
        );
        assert_eq!(describe_drain_error(&"no way".into(), b""), "no way");
    }
}

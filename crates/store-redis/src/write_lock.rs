//! Commands of the write lock: acquire, wait, commit, renew and release.

use std::time::Duration;

use crate::command_encoding::CommandArgsBuffer;
use crate::connection::{CommandArgs, args, to_arg};
use crate::keys::{Keys, STORE_STATE_KEY};
use crate::script;

/// Lease of the write lock, in milliseconds. If its owner dies, peers wait until it expires.
const LOCK_LEASE_MS: u64 = 3_000;
/// Interval of renewals during long reads, before other commands.
pub(crate) const LOCK_RENEWAL_INTERVAL: Duration = Duration::from_millis(LOCK_LEASE_MS / 4);
/// Maximum time to wait for the lock before requesting it again, in seconds.
const MAX_LOCK_WAIT_SECS: &str = "0.5";

/// Returns the keys that `begin_transaction.lua` and `commit.lua` share.
pub(crate) fn keys_of_lock_scripts(keys: &Keys) -> CommandArgs {
    let names = [
        STORE_STATE_KEY,
        "pointsman:commit-records",
        "pointsman:write-lock",
        "pointsman:write-lock:waiting",
        "pointsman:invalidation-records",
    ];
    names.iter().map(|name| keys.with_prefix(name)).collect()
}

/// Returns the command that requests the lock. `cached_version`: the version that the caches reflect.
pub(crate) fn acquire_command(keys: &Keys, lock_owner: &str, cached_version: Option<i64>) -> CommandArgs {
    let cached_version = cached_version.map_or(String::new(), |version| version.to_string());
    let mut key_args = keys_of_lock_scripts(keys);
    key_args.push(keys.with_prefix("pointsman:write-lock:requested"));
    script::BEGIN_TRANSACTION.build_evalsha_command(
        key_args,
        vec![to_arg(lock_owner), to_arg(LOCK_LEASE_MS.to_string()), to_arg(cached_version)],
    )
}

/// Returns the command that waits until the owner hands the lock over, or for a limited time.
pub(crate) fn wait_command(keys: &Keys, lock_owner: &str) -> CommandArgs {
    args!["BLPOP", keys.with_prefix(&format!("pointsman:write-lock:wake:{lock_owner}")), MAX_LOCK_WAIT_SECS]
}

/// Contents of a commit.
#[derive(Debug, Default)]
pub(crate) struct CommitRequest<'s> {
    /// Encoded version that the transaction began with.
    pub(crate) expected_version: Vec<u8>,
    /// Encoded new store state.
    pub(crate) new_state: Vec<u8>,
    /// Encoded commit record.
    pub(crate) commit_record: Vec<u8>,
    /// Encoded invalidation record; empty if none is published.
    pub(crate) invalidation_record: Vec<u8>,
    /// Whether the lock is kept for the next transaction.
    pub(crate) keep_lock: bool,
    pub(crate) fences: &'s [OutboxFence],
    /// Commands for the writes, each preceded by its number of arguments.
    pub(crate) writes: Option<&'s CommandArgsBuffer>,
}

/// Required state of an object's outbox when its events are acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct OutboxFence {
    pub(crate) object: Vec<u8>,
    /// Required owner of the object; empty if any will do.
    pub(crate) required_owner: Vec<u8>,
    /// Id of its event in flight; empty if it has none.
    pub(crate) in_flight_id: Vec<u8>,
    /// Number of acknowledged events.
    pub(crate) acknowledged_event_count: usize,
}

/// Returns the command that commits a transaction and hands the lock over.
pub(crate) fn commit_command(keys: &Keys, lock_owner: &str, request: CommitRequest<'_>) -> CommandArgsBuffer {
    let mut key_args = keys_of_lock_scripts(keys);
    key_args.push(keys.with_prefix("pointsman:write-lock:wake:"));
    let keep_lock = if request.keep_lock { "1" } else { "" };
    let fence_count = request.fences.len().to_string();
    let mut arguments = args![
        lock_owner,
        LOCK_LEASE_MS.to_string(),
        request.expected_version,
        request.new_state,
        request.commit_record,
        request.invalidation_record,
        keys.with_prefix(""),
        keep_lock,
        fence_count
    ];
    for OutboxFence { object, required_owner: owner, in_flight_id, acknowledged_event_count: event_count } in
        request.fences
    {
        arguments.extend(args![object, owner, in_flight_id, event_count.to_string()]);
    }
    let mut command = CommandArgsBuffer::default();
    command.push_args(script::COMMIT.build_evalsha_command(key_args, arguments));
    request.writes.into_iter().for_each(|writes| command.append(writes));
    command
}

/// Returns the command that renews the lock, if it is still owned.
pub(crate) fn renew_command(keys: &Keys, lock_owner: &str) -> CommandArgsBuffer {
    commit_command(keys, lock_owner, CommitRequest { keep_lock: true, ..CommitRequest::default() })
}

/// Returns the command that releases the lock without writing.
pub(crate) fn release_command(keys: &Keys, lock_owner: &str) -> CommandArgsBuffer {
    commit_command(keys, lock_owner, CommitRequest::default())
}

//! The turn to write: the words of asking for it, of waiting for it, and of handing it on.

use std::time::Duration;

use crate::command_buffer::CommandBuffer;
use crate::connection::{CommandArgs, args, to_arg};
use crate::keys::Keys;
use crate::script;

/// How long one has the turn at most, in milliseconds. Whoever dies with it keeps the others waiting for so long.
const LOCK_LEASE_MS: u64 = 3_000;
/// Whoever has much to read says so often that it still has it.
pub(crate) const LOCK_RENEWAL_INTERVAL: Duration = Duration::from_millis(LOCK_LEASE_MS / 4);
/// How long a waiting one sleeps at most before it looks again, in seconds.
const MAX_LOCK_WAIT_SECS: &str = "0.5";

/// What `begin_transaction.lua` and `commit.lua` have in common.
pub(crate) fn lock_keys(keys: &Keys) -> CommandArgs {
    let names = [
        "pointsman:point",
        "pointsman:told",
        "pointsman:turn",
        "pointsman:turn:waiting",
        "pointsman:touched",
    ];
    names.iter().map(|name| keys.with_prefix(name)).collect()
}

/// Asks for the turn. `known`: the version that is remembered, if any.
pub(crate) fn acquire_command(keys: &Keys, lock_owner: &str, cached_version: Option<i64>) -> CommandArgs {
    let cached_version = cached_version.map_or(String::new(), |version| version.to_string());
    let mut all = lock_keys(keys);
    all.push(keys.with_prefix("pointsman:turn:asked"));
    script::BEGIN_TRANSACTION.call_command(
        all,
        vec![to_arg(lock_owner), to_arg(LOCK_LEASE_MS.to_string()), to_arg(cached_version)],
    )
}

/// Sleeps until somebody hands the turn on to this one.
pub(crate) fn wait_command(keys: &Keys, lock_owner: &str) -> CommandArgs {
    args!["BLPOP", keys.with_prefix(&format!("pointsman:turn:wake:{lock_owner}")), MAX_LOCK_WAIT_SECS]
}

/// What a commit sends.
#[derive(Debug, Default)]
pub(crate) struct CommitRequest<'s> {
    /// Version and mark that the transaction began with.
    pub(crate) expected_version: Vec<u8>,
    /// The new point.
    pub(crate) new_state: Vec<u8>,
    /// What the others are told.
    pub(crate) commit_record: Vec<u8>,
    /// What it wrote; empty if that is not told.
    pub(crate) invalidation: Vec<u8>,
    /// The next transaction is this one's too.
    pub(crate) keep_lock: bool,
    pub(crate) fences: &'s [OutboxFence],
    /// Commands, each with the number of its words before it.
    pub(crate) writes: Option<&'s CommandBuffer>,
}

/// How an object's outbox must be, if its events were taken out of it.
#[derive(Clone, Debug)]
pub(crate) struct OutboxFence {
    pub(crate) object: Vec<u8>,
    /// Who must hold it; empty: whoever does.
    pub(crate) owner: Vec<u8>,
    /// The id of its event in flight; empty if it has none.
    pub(crate) in_flight_id: Vec<u8>,
    /// How many events are taken out of it.
    pub(crate) event_count: usize,
}

pub(crate) fn commit_command(keys: &Keys, lock_owner: &str, request: CommitRequest<'_>) -> CommandBuffer {
    let mut all = lock_keys(keys);
    all.push(keys.with_prefix("pointsman:turn:wake:"));
    let keep = if request.keep_lock { "1" } else { "" };
    let fence_count = request.fences.len().to_string();
    let mut arguments = args![
        lock_owner,
        LOCK_LEASE_MS.to_string(),
        request.expected_version,
        request.new_state,
        request.commit_record,
        request.invalidation,
        keys.with_prefix(""),
        keep,
        fence_count
    ];
    for OutboxFence { object, owner, in_flight_id, event_count } in request.fences {
        arguments.extend(args![object, owner, in_flight_id, event_count.to_string()]);
    }
    let mut command = CommandBuffer::default();
    command.push_args(script::COMMIT.call_command(all, arguments));
    request.writes.into_iter().for_each(|writes| command.append(writes));
    command
}

/// Keeps the turn for as long again, if this one still has it.
pub(crate) fn renew_command(keys: &Keys, lock_owner: &str) -> CommandBuffer {
    commit_command(keys, lock_owner, CommitRequest { keep_lock: true, ..CommitRequest::default() })
}

/// Releases the write lock without writing.
pub(crate) fn release_command(keys: &Keys, lock_owner: &str) -> CommandBuffer {
    commit_command(keys, lock_owner, CommitRequest::default())
}

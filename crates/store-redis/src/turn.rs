//! The turn to write: the words of asking for it, of waiting for it, and of handing it on.

use std::time::Duration;

use crate::command_buffer::CommandBuffer;
use crate::connection::{CommandArgs, args, to_arg};
use crate::keys::Keys;
use crate::script;

/// How long one has the turn at most, in milliseconds. Whoever dies with it keeps the others waiting for so long.
const TURN: u64 = 3_000;
/// Whoever has much to read says so often that it still has it.
pub(crate) const RENEWAL: Duration = Duration::from_millis(TURN / 4);
/// How long a waiting one sleeps at most before it looks again, in seconds.
const WAIT: &str = "0.5";

/// What `begin.lua` and `commit.lua` have in common.
pub(crate) fn turn_keys(keys: &Keys) -> CommandArgs {
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
pub(crate) fn ask(keys: &Keys, me: &str, known: Option<i64>) -> CommandArgs {
    let known = known.map_or(String::new(), |version| version.to_string());
    let mut all = turn_keys(keys);
    all.push(keys.with_prefix("pointsman:turn:asked"));
    script::BEGIN.call(all, vec![to_arg(me), to_arg(TURN.to_string()), to_arg(known)])
}

/// Sleeps until somebody hands the turn on to this one.
pub(crate) fn wait(keys: &Keys, me: &str) -> CommandArgs {
    args!["BLPOP", keys.with_prefix(&format!("pointsman:turn:wake:{me}")), WAIT]
}

/// What a commit sends.
#[derive(Debug, Default)]
pub(crate) struct Sent<'s> {
    /// Version and mark that the transaction began with.
    pub(crate) before: Vec<u8>,
    /// The new point.
    pub(crate) point: Vec<u8>,
    /// What the others are told.
    pub(crate) told: Vec<u8>,
    /// What it wrote; empty if that is not told.
    pub(crate) touched: Vec<u8>,
    /// The next transaction is this one's too.
    pub(crate) keep_lock: bool,
    pub(crate) fences: &'s [Fence],
    /// Commands, each with the number of its words before it.
    pub(crate) writes: Option<&'s CommandBuffer>,
}

/// How an object's outbox must be, if its events were taken out of it.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    pub(crate) object: Vec<u8>,
    /// Who must hold it; empty: whoever does.
    pub(crate) holder: Vec<u8>,
    /// The id of its event in flight; empty if it has none.
    pub(crate) id: Vec<u8>,
    /// How many events are taken out of it.
    pub(crate) count: usize,
}

pub(crate) fn commit(keys: &Keys, me: &str, sent: Sent<'_>) -> CommandBuffer {
    let mut all = turn_keys(keys);
    all.push(keys.with_prefix("pointsman:turn:wake:"));
    let keep = if sent.keep_lock { "1" } else { "" };
    let count = sent.fences.len().to_string();
    let mut arguments = args![
        me,
        TURN.to_string(),
        sent.before,
        sent.point,
        sent.told,
        sent.touched,
        keys.with_prefix(""),
        keep,
        count
    ];
    for Fence { object, holder, id, count } in sent.fences {
        arguments.extend(args![object, holder, id, count.to_string()]);
    }
    let mut command = CommandBuffer::default();
    command.push_args(script::COMMIT.call(all, arguments));
    sent.writes.into_iter().for_each(|writes| command.append(writes));
    command
}

/// Keeps the turn for as long again, if this one still has it.
pub(crate) fn renew(keys: &Keys, me: &str) -> CommandBuffer {
    commit(keys, me, Sent { keep_lock: true, ..Sent::default() })
}

/// Lets the next one have the turn, without having written anything.
pub(crate) fn hand_on(keys: &Keys, me: &str) -> CommandBuffer {
    commit(keys, me, Sent::default())
}

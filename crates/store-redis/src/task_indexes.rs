//! The index entries of a task.

use pointsman_core::TaskSeq;
use pointsman_store::row::{ActiveTaskRow, ArchivedTaskRow, STATUS_ERROR, TaskPhase};

use smallvec::{SmallVec, smallvec};

use crate::codec::{MemberBuilder, MemberOrField};
use crate::keys::Index;

pub(crate) type IndexEntry = (Index, MemberOrField);
/// The index entries of a task. Few tasks have more than fit inline.
type IndexEntries = SmallVec<[IndexEntry; 4]>;

/// Returns the index entries of an active task.
pub(crate) fn active_task_entries(active: &ActiveTaskRow) -> IndexEntries {
    let (seq, number_member) = (active.seq.0, MemberBuilder::from_i64(active.seq.0).finish());
    let mut entries = IndexEntries::new();
    match active.phase {
        TaskPhase::Ready => entries.push((Index::ReadyTasks(active.queue), ready_task_member(active))),
        TaskPhase::Locked => entries.extend(locked_task_entries(active)),
        phase => entries.push((Index::tasks_in_phase(active.queue, phase), number_member.clone())),
    }
    match active.phase {
        TaskPhase::Delayed => entries.push((
            Index::DueTasks,
            MemberBuilder::from_i64(active.due_time().micros()).push_i64(seq).finish(),
        )),
        TaskPhase::SyncGated => entries.extend(active.event.map(|event| {
            (
                Index::SyncGatedTasks,
                MemberBuilder::from_i64(event.as_i64()).push_i64(active.sync_stage).push_i64(seq).finish(),
            )
        })),
        TaskPhase::Scheduled => entries.push((Index::TasksInScheduledPhase, number_member)),
        TaskPhase::Halted | TaskPhase::Missing => entries.push((Index::HaltedOrMissingTasks, number_member)),
        TaskPhase::BlockedByTask | TaskPhase::Ready | TaskPhase::Locked => {}
    }
    if let Some((lane, position)) = active.lane.zip(active.lane_position) {
        entries.push((
            Index::LanePositions,
            MemberBuilder::from_i64(lane).push_i64(position).push_i64(seq).finish(),
        ));
    }
    entries.extend(active.concurrency_group.and_then(|group| concurrency_group_entry(group, active)));
    entries.extend(out_of_order_task_entry(
        active.lifecycle.out_of_order,
        active.event.map(|event| event.as_i64()),
        active.seq,
    ));
    entries
}

/// Returns the member of a ready task: highest score first, then lowest rank, then oldest.
pub(crate) fn ready_task_member(active: &ActiveTaskRow) -> MemberOrField {
    let bucket = active.key_bucket.unwrap_or(u16::MAX).to_be_bytes();
    MemberBuilder::from_i64(-active.score)
        .push_i64(active.rank)
        .push_i64(active.seq.0)
        .push_bytes(&bucket)
        .finish()
}

fn locked_task_entries(active: &ActiveTaskRow) -> IndexEntries {
    let Some(lease) = active.lease() else { return IndexEntries::new() };
    let mut entries: IndexEntries =
        smallvec![(Index::LockedTasks(lease.node), MemberBuilder::from_i64(active.seq.0).finish())];
    entries.extend(lease.until.map(|until| {
        (Index::LeaseExpiries, MemberBuilder::from_i64(until.micros()).push_i64(active.seq.0).finish())
    }));
    entries
}

/// Returns the entry of a task in the index of its concurrency group, which contains running tasks, those that may run, and
/// blocked ones; `None` for tasks in other phases.
fn concurrency_group_entry(group: i64, active: &ActiveTaskRow) -> Option<IndexEntry> {
    let is_blocked = match active.phase {
        TaskPhase::Ready | TaskPhase::Scheduled | TaskPhase::Locked => 0,
        TaskPhase::BlockedByTask => 1,
        TaskPhase::SyncGated | TaskPhase::Delayed | TaskPhase::Halted | TaskPhase::Missing => return None,
    };
    Some((
        Index::TasksByConcurrencyGroup,
        MemberBuilder::from_i64(group).push_i64(is_blocked).push_i64(active.seq.0).finish(),
    ))
}

/// Returns the index entries of an archived task.
pub(crate) fn archived_task_entries(archived: &ArchivedTaskRow) -> IndexEntries {
    let number_member = MemberBuilder::from_i64(archived.seq.0).finish();
    let mut entries = IndexEntries::new();
    if archived.encode_status() == STATUS_ERROR {
        entries.push((Index::FailedTasks, number_member.clone()));
    }
    if archived.event.is_none() && archived.key.is_none() {
        entries.push((Index::ArchivedCollectionRuns, number_member));
    }
    entries.extend(out_of_order_task_entry(
        archived.lifecycle.out_of_order,
        archived.event.map(|event| event.as_i64()),
        archived.seq,
    ));
    entries
}

fn out_of_order_task_entry(out_of_order: bool, event: Option<i64>, seq: TaskSeq) -> Option<IndexEntry> {
    event
        .filter(|_| out_of_order)
        .map(|event| (Index::OutOfOrderTasks, MemberBuilder::from_i64(event).push_i64(seq.0).finish()))
}

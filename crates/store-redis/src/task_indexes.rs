//! The index entries of a task.

use pointsman_core::TaskSeq;
use pointsman_store::row::{ActiveTaskRow, ArchivedTaskRow, STATUS_ERROR, TaskPhase};

use smallvec::{SmallVec, smallvec};

use crate::codec::{Member, MemberBuilder};
use crate::keys::Index;

pub(crate) type IndexEntry = (Index, Member);
/// Few tasks have more entries.
type IndexEntries = SmallVec<[IndexEntry; 4]>;

/// Returns the index entries of an active task.
pub(crate) fn active_task_entries(live: &ActiveTaskRow) -> IndexEntries {
    let (seq, number) = (live.seq.0, MemberBuilder::from_i64(live.seq.0).finish());
    let mut entries = IndexEntries::new();
    match live.phase {
        TaskPhase::Ready => entries.push((Index::ReadyTasks(live.queue), ready_member(live))),
        TaskPhase::Locked => entries.extend(locked_task_entries(live)),
        phase => entries.push((Index::waiting_tasks(live.queue, phase), number.clone())),
    }
    match live.phase {
        TaskPhase::Delayed => entries.push((
            Index::DueTasks,
            MemberBuilder::from_i64(live.due_time().micros()).push_i64(seq).finish(),
        )),
        TaskPhase::Gated => entries.extend(live.event.map(|event| {
            (
                Index::GatedTasks,
                MemberBuilder::from_i64(event.as_i64()).push_i64(live.stage).push_i64(seq).finish(),
            )
        })),
        TaskPhase::Scheduled => entries.push((Index::ScheduledTasks, number)),
        TaskPhase::Halted | TaskPhase::Missing => entries.push((Index::HaltedOrMissingTasks, number)),
        TaskPhase::Blocked | TaskPhase::Ready | TaskPhase::Locked => {}
    }
    if let Some((lane, place)) = live.lane.zip(live.lane_position) {
        entries.push((
            Index::LanePositions,
            MemberBuilder::from_i64(lane).push_i64(place).push_i64(seq).finish(),
        ));
    }
    entries.extend(live.concurrency_group.and_then(|crowd| concurrency_group_entry(crowd, live)));
    entries.extend(late_task_entry(live.life.late, live.event.map(|event| event.as_i64()), live.seq));
    entries
}

/// Returns the member of a ready task: highest score first, then lowest rank, then oldest.
pub(crate) fn ready_member(live: &ActiveTaskRow) -> Member {
    let bucket = live.key_bucket.unwrap_or(u16::MAX).to_be_bytes();
    MemberBuilder::from_i64(-live.score).push_i64(live.rank).push_i64(live.seq.0).push_bytes(&bucket).finish()
}

fn locked_task_entries(live: &ActiveTaskRow) -> IndexEntries {
    let Some(lease) = live.lease() else { return IndexEntries::new() };
    let mut entries: IndexEntries =
        smallvec![(Index::LockedTasks(lease.node), MemberBuilder::from_i64(live.seq.0).finish())];
    entries.extend(lease.until.map(|until| {
        (Index::LeaseExpiries, MemberBuilder::from_i64(until.micros()).push_i64(live.seq.0).finish())
    }));
    entries
}

/// A concurrency group indexes the tasks that may run and those that are blocked.
fn concurrency_group_entry(crowd: i64, live: &ActiveTaskRow) -> Option<IndexEntry> {
    let blocked = match live.phase {
        TaskPhase::Ready | TaskPhase::Scheduled | TaskPhase::Locked => 0,
        TaskPhase::Blocked => 1,
        TaskPhase::Gated | TaskPhase::Delayed | TaskPhase::Halted | TaskPhase::Missing => return None,
    };
    Some((
        Index::ConcurrencyGroups,
        MemberBuilder::from_i64(crowd).push_i64(blocked).push_i64(live.seq.0).finish(),
    ))
}

/// Returns the index entries of an archived task.
pub(crate) fn archived_task_entries(past: &ArchivedTaskRow) -> IndexEntries {
    let number = MemberBuilder::from_i64(past.seq.0).finish();
    let mut entries = IndexEntries::new();
    if past.encode_status() == STATUS_ERROR {
        entries.push((Index::FailedTasks, number.clone()));
    }
    if past.event.is_none() && past.key.is_none() {
        entries.push((Index::ArchivedSourceRuns, number));
    }
    entries.extend(late_task_entry(past.life.late, past.event.map(|event| event.as_i64()), past.seq));
    entries
}

fn late_task_entry(late: bool, event: Option<i64>, seq: TaskSeq) -> Option<IndexEntry> {
    event
        .filter(|_| late)
        .map(|event| (Index::LateTasks, MemberBuilder::from_i64(event).push_i64(seq.0).finish()))
}

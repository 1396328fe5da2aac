//! In which indexes a task stands.

use pointsman_core::TaskSeq;
use pointsman_store::row::{ERROR, Live, Past, Phase};

use smallvec::{SmallVec, smallvec};

use crate::codec::{Member, MemberBuilder};
use crate::keys::Index;

pub(crate) type Place = (Index, Member);
/// Few tasks stand in more.
type Places = SmallVec<[Place; 4]>;

/// The places of an unfinished task.
pub(crate) fn of_live(live: &Live) -> Places {
    let (seq, number) = (live.seq.0, MemberBuilder::from_i64(live.seq.0).finish());
    let mut places = Places::new();
    match live.phase {
        Phase::Ready => places.push((Index::ReadyTasks(live.queue), ready_member(live))),
        Phase::Locked => places.extend(held(live)),
        phase => places.push((Index::waiting_tasks(live.queue, phase), number.clone())),
    }
    match live.phase {
        Phase::Delayed => places
            .push((Index::DueTasks, MemberBuilder::from_i64(live.due().micros()).push_i64(seq).finish())),
        Phase::Gated => places.extend(live.event.map(|event| {
            (
                Index::GatedTasks,
                MemberBuilder::from_i64(event.as_i64()).push_i64(live.stage).push_i64(seq).finish(),
            )
        })),
        Phase::Scheduled => places.push((Index::ScheduledTasks, number)),
        Phase::Halted | Phase::Missing => places.push((Index::HaltedOrMissingTasks, number)),
        Phase::Blocked | Phase::Ready | Phase::Locked => {}
    }
    if let Some((lane, place)) = live.lane.zip(live.place) {
        places.push((
            Index::LanePositions,
            MemberBuilder::from_i64(lane).push_i64(place).push_i64(seq).finish(),
        ));
    }
    places.extend(live.crowd.and_then(|crowd| crowded(crowd, live)));
    places.extend(late(live.life.late, live.event.map(|event| event.as_i64()), live.seq));
    places
}

/// The member of a ready task: the greatest score first, then the least rank, then the oldest.
pub(crate) fn ready_member(live: &Live) -> Member {
    let bucket = live.bucket.unwrap_or(u16::MAX).to_be_bytes();
    MemberBuilder::from_i64(-live.score).push_i64(live.rank).push_i64(live.seq.0).push_bytes(&bucket).finish()
}

fn held(live: &Live) -> Places {
    let Some(lease) = live.lease() else { return Places::new() };
    let mut places: Places =
        smallvec![(Index::LockedTasks(lease.node), MemberBuilder::from_i64(live.seq.0).finish())];
    places.extend(lease.until.map(|until| {
        (Index::LeaseExpiries, MemberBuilder::from_i64(until.micros()).push_i64(live.seq.0).finish())
    }));
    places
}

/// In a crowd stand those that have their turn, and those that are blocked.
fn crowded(crowd: i64, live: &Live) -> Option<Place> {
    let blocked = match live.phase {
        Phase::Ready | Phase::Scheduled | Phase::Locked => 0,
        Phase::Blocked => 1,
        Phase::Gated | Phase::Delayed | Phase::Halted | Phase::Missing => return None,
    };
    Some((
        Index::ConcurrencyGroups,
        MemberBuilder::from_i64(crowd).push_i64(blocked).push_i64(live.seq.0).finish(),
    ))
}

/// The places of an ended task.
pub(crate) fn of_past(past: &Past) -> Places {
    let number = MemberBuilder::from_i64(past.seq.0).finish();
    let mut places = Places::new();
    if past.status_code() == ERROR {
        places.push((Index::FailedTasks, number.clone()));
    }
    if past.event.is_none() && past.key.is_none() {
        places.push((Index::ArchivedSourceRuns, number));
    }
    places.extend(late(past.life.late, past.event.map(|event| event.as_i64()), past.seq));
    places
}

fn late(late: bool, event: Option<i64>, seq: TaskSeq) -> Option<Place> {
    event
        .filter(|_| late)
        .map(|event| (Index::LateTasks, MemberBuilder::from_i64(event).push_i64(seq.0).finish()))
}

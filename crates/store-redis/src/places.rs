//! In which indexes a task stands.

use pointsman_core::TaskSeq;
use pointsman_store::row::{ERROR, Live, Past, Phase};

use smallvec::{SmallVec, smallvec};

use crate::codec::{Member, Ordered};
use crate::keys::Index;

pub(crate) type Place = (Index, Member);
/// Few tasks stand in more.
type Places = SmallVec<[Place; 4]>;

/// The places of an unfinished task.
pub(crate) fn of_live(live: &Live) -> Places {
    let (seq, number) = (live.seq.0, Ordered::of(live.seq.0).done());
    let mut places = Places::new();
    match live.phase {
        Phase::Ready => places.push((Index::Ready(live.queue), ready_member(live))),
        Phase::Locked => places.extend(held(live)),
        phase => places.push((Index::waiting(live.queue, phase), number.clone())),
    }
    match live.phase {
        Phase::Delayed => places.push((Index::Due, Ordered::of(live.due().micros()).and(seq).done())),
        Phase::Gated => places.extend(
            live.event
                .map(|event| (Index::Gated, Ordered::of(event.as_i64()).and(live.stage).and(seq).done())),
        ),
        Phase::Scheduled => places.push((Index::Scheduled, number)),
        Phase::Halted | Phase::Missing => places.push((Index::Stranded, number)),
        Phase::Blocked | Phase::Ready | Phase::Locked => {}
    }
    if let Some((lane, place)) = live.lane.zip(live.place) {
        places.push((Index::Lanes, Ordered::of(lane).and(place).and(seq).done()));
    }
    places.extend(live.crowd.and_then(|crowd| crowded(crowd, live)));
    places.extend(late(live.life.late, live.event.map(|event| event.as_i64()), live.seq));
    places
}

/// The member of a ready task: the greatest score first, then the least rank, then the oldest.
pub(crate) fn ready_member(live: &Live) -> Member {
    let bucket = live.bucket.unwrap_or(u16::MAX).to_be_bytes();
    Ordered::of(-live.score).and(live.rank).and(live.seq.0).and_bytes(&bucket).done()
}

fn held(live: &Live) -> Places {
    let Some(lease) = live.lease() else { return Places::new() };
    let mut places: Places = smallvec![(Index::Held(lease.node), Ordered::of(live.seq.0).done())];
    places
        .extend(lease.until.map(|until| (Index::Leases, Ordered::of(until.micros()).and(live.seq.0).done())));
    places
}

/// In a crowd stand those that have their turn, and those that are blocked.
fn crowded(crowd: i64, live: &Live) -> Option<Place> {
    let blocked = match live.phase {
        Phase::Ready | Phase::Scheduled | Phase::Locked => 0,
        Phase::Blocked => 1,
        Phase::Gated | Phase::Delayed | Phase::Halted | Phase::Missing => return None,
    };
    Some((Index::Crowds, Ordered::of(crowd).and(blocked).and(live.seq.0).done()))
}

/// The places of an ended task.
pub(crate) fn of_past(past: &Past) -> Places {
    let number = Ordered::of(past.seq.0).done();
    let mut places = Places::new();
    if past.status_code() == ERROR {
        places.push((Index::Failed, number.clone()));
    }
    if past.event.is_none() && past.key.is_none() {
        places.push((Index::Runs, number));
    }
    places.extend(late(past.life.late, past.event.map(|event| event.as_i64()), past.seq));
    places
}

fn late(late: bool, event: Option<i64>, seq: TaskSeq) -> Option<Place> {
    event.filter(|_| late).map(|event| (Index::Late, Ordered::of(event).and(seq.0).done()))
}

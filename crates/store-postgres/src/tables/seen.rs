//! What was fetched for a transaction, so that it need not be asked for again. Objects and the heads of their lanes stay
//! known to the next one, if nobody else wrote in between.

use std::collections::{HashMap, HashSet};

use pointsman_core::{Event, EventId, TaskSeq, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::lane_number;
use pointsman_store::row::{HandlerId, Head, Numbered, Object, ObjectNumber, Waiting};
use pointsman_store::tables::Foreseen;
use tokio_postgres::Row;

use super::lanes::{KNOWN, Lanes};
use super::touched::{Became, Heard};
use crate::link::{Piece, params};
use crate::rows::{bucket, get, maybe_seq, phase, time};
use crate::session::query;

/// A digest of what was sent, and the answer that it got.
pub(crate) type Answer = ([u8; 32], String);

/// Of so many objects it stays known what is remembered of them, and of as many lanes who stands first.
const KEPT: usize = 20_000;
/// So many of an object's lane are fetched with the object: the first one, and the one that follows it.
const FETCHED: usize = 2;

#[derive(Default)]
pub(crate) struct Seen {
    names: HashMap<(Tenant, String), ObjectNumber>,
    /// All that have a name here; nothing if somebody else has written of them since.
    objects: HashMap<ObjectNumber, Option<Object>>,
    /// There are none of these names.
    absent: HashSet<(Tenant, String)>,
    pub(crate) answers: HashMap<(Tenant, String), Option<Answer>>,
    pub(crate) lanes: Lanes,
    pub(crate) events: HashMap<EventId, Event>,
    pub(crate) orders: HashMap<i64, Numbered>,
}

impl Seen {
    /// The questions whose answers [`Seen::take`] takes.
    pub(crate) fn pieces(foreseen: &Foreseen) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let Foreseen { objects, lanes, answers, .. } = foreseen;
        if !objects.is_empty() {
            let tenants: Vec<String> = objects.iter().map(|(tenant, ..)| tenant.to_string()).collect();
            let keys: Vec<String> = objects.iter().map(|(_, key, _)| key.clone()).collect();
            let handlers: Vec<HandlerId> = objects.iter().map(|(.., handler)| *handler).collect();
            let query = query!("write/foresee_objects", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY);
            pieces.push(Piece::Statement(query, params![tenants, keys, handlers]));
        }
        if !lanes.is_empty() {
            let query = query!("write/foresee_lanes", INT8_ARRAY, INT8);
            pieces.push(Piece::Statement(query, params![lanes.clone(), KNOWN as i64]));
        }
        if !answers.is_empty() {
            let tenants: Vec<String> = answers.iter().map(|(tenant, _)| tenant.to_string()).collect();
            let keys: Vec<String> = answers.iter().map(|(_, key)| key.clone()).collect();
            let query = query!("write/foresee_answers", TEXT_ARRAY, TEXT_ARRAY);
            pieces.push(Piece::Statement(query, params![tenants, keys]));
        }
        pieces
    }

    /// Whether there is room to keep what is known for another transaction.
    pub(crate) fn has_room(&self) -> bool {
        self.names.len() <= KEPT && self.lanes.len() <= KEPT
    }

    /// Parts what will be looked at into what must be asked for and what is known already.
    pub(crate) fn part(&self, foreseen: Foreseen) -> (Foreseen, Foreseen) {
        let (known, asked) = foreseen.lanes.into_iter().partition(|lane| self.lanes.knows_next(*lane));
        let mut asked = Foreseen { lanes: asked, answers: foreseen.answers, ..Foreseen::default() };
        let mut known = Foreseen { lanes: known, ..Foreseen::default() };
        for (tenant, key, handler) in foreseen.objects {
            let name = (tenant, key);
            let to = if self.knows(&name, handler) { &mut known } else { &mut asked };
            to.objects.push((name.0, name.1, handler));
        }
        (asked, known)
    }

    fn knows(&self, name: &(Tenant, String), handler: HandlerId) -> bool {
        self.object(name)
            .flatten()
            .is_some_and(|object| handler <= 0 || self.lanes.knows_head(lane_number(object.number, handler)))
    }

    /// An object, or that there is none; nothing if that is not known.
    pub(crate) fn object(&self, name: &(Tenant, String)) -> Option<Option<&Object>> {
        match self.names.get(name).and_then(|number| self.numbered(*number)) {
            Some(object) => Some(Some(object)),
            None => self.absent.contains(name).then_some(None),
        }
    }

    /// An object by its number, if it is known.
    pub(crate) fn numbered(&self, number: ObjectNumber) -> Option<&Object> {
        self.objects.get(&number)?.as_ref()
    }

    /// This is what is known of an object now.
    pub(crate) fn learn(&mut self, name: (Tenant, String), object: Option<Object>) {
        match object {
            // Several objects may have this number, and the next event gives each its own.
            Some(Object { number: 0, .. }) => drop(self.absent.remove(&name)),
            Some(object) => {
                let number = object.number;
                self.objects.insert(number, Some(object));
                // An object that was deleted and has come back has another number.
                if let Some(before) = self.names.insert(name, number).filter(|before| *before != number) {
                    self.objects.remove(&before);
                }
            }
            None => drop(self.absent.insert(name)),
        }
    }

    /// Drops what is cached of an object that this transaction has deleted.
    pub(crate) fn drop_cached_object(&mut self, name: (Tenant, String)) {
        if let Some(number) = self.names.remove(&name) {
            self.objects.remove(&number);
            self.lanes.forget_object(number);
        }
        self.absent.insert(name);
    }

    /// Somebody else wrote something of these objects, and of lanes that belong to none: of what is known, only that stays
    /// which they told.
    pub(crate) fn hear(&mut self, told: Vec<Heard>) {
        for Heard { number, object, empty } in told {
            self.lanes.forget_object(number);
            let Some(known) = self.objects.get_mut(&number) else { continue };
            match object {
                Became::AsBefore => {}
                Became::Now(object) => *known = Some(object),
                Became::Otherwise => *known = None,
            }
            empty
                .into_iter()
                .for_each(|handler| self.lanes.fetched(lane_number(number, handler), vec![], KNOWN));
        }
    }

    /// A transaction begins in which so many objects are numbered. What may have changed meanwhile was not kept.
    pub(crate) fn begin(&mut self, objects: i64) {
        self.lanes.begin(objects);
        self.absent.clear();
        self.answers.clear();
        self.events.clear();
        self.orders.clear();
    }

    /// Takes what was fetched. Nothing of it may have been written in this transaction.
    pub(crate) fn take(
        &mut self,
        foreseen: Foreseen,
        mut answers: impl Iterator<Item = Vec<Row>>,
    ) -> Result<()> {
        if !foreseen.objects.is_empty() {
            self.take_objects(&foreseen.objects, &answers.next().unwrap_or_default())?;
        }
        if !foreseen.lanes.is_empty() {
            self.take_lanes(&foreseen.lanes, &answers.next().unwrap_or_default())?;
        }
        if !foreseen.answers.is_empty() {
            self.take_answers(foreseen.answers, &answers.next().unwrap_or_default())?;
        }
        Ok(())
    }

    fn take_objects(&mut self, wanted: &[(Tenant, String, HandlerId)], rows: &[Row]) -> Result<()> {
        for (tenant, key, _) in wanted {
            self.absent.insert((tenant.clone(), key.clone()));
        }
        let mut lanes: HashMap<i64, Vec<Head>> = HashMap::new();
        for row in rows {
            let index = usize::try_from(get::<i64>(row, 0)? - 1).unwrap_or(usize::MAX);
            let Some((tenant, key, handler)) = wanted.get(index) else { continue };
            let object = object_of(row, 1)?;
            if *handler > 0 {
                let lane = lanes.entry(lane_number(object.number, *handler)).or_default();
                lane.extend(maybe_head(row, 4)?);
            }
            self.learn((tenant.clone(), key.clone()), Some(object));
        }
        lanes.into_iter().for_each(|(lane, heads)| self.lanes.fetched(lane, distinct(heads), FETCHED));
        Ok(())
    }

    fn take_lanes(&mut self, wanted: &[i64], rows: &[Row]) -> Result<()> {
        let mut lanes: HashMap<i64, Vec<Head>> = wanted.iter().map(|lane| (*lane, Vec::new())).collect();
        for row in rows {
            lanes.entry(get(row, 0)?).or_default().extend(maybe_head(row, 1)?);
        }
        lanes.into_iter().for_each(|(lane, heads)| self.lanes.fetched(lane, distinct(heads), KNOWN));
        Ok(())
    }

    fn take_answers(&mut self, wanted: Vec<(Tenant, String)>, rows: &[Row]) -> Result<()> {
        self.answers.extend(wanted.into_iter().map(|name| (name, None)));
        for row in rows {
            let tenant = Tenant::new(get::<&str>(row, 0)?).map_err(Fault::damaged)?;
            self.answers.insert((tenant, get(row, 1)?), Some(answer_of(row, 2)?));
        }
        Ok(())
    }
}

/// The same lane may have been asked for more than once.
fn distinct(mut heads: Vec<Head>) -> Vec<Head> {
    heads.sort_by_key(|head| head.place);
    heads.dedup_by_key(|head| head.place);
    heads
}

/// number, last, sent.
pub(crate) fn object_of(row: &Row, at: usize) -> Result<Object> {
    Ok(Object {
        number: get(row, at)?,
        last: EventId::from_i64(get(row, at + 1)?),
        sent: Object::decode_sent(get(row, at + 2)?),
    })
}

/// digest, answer.
pub(crate) fn answer_of(row: &Row, at: usize) -> Result<Answer> {
    let digest: &[u8] = get(row, at)?;
    let digest = digest.try_into().map_err(Fault::damaged)?;
    Ok((digest, get(row, at + 1)?))
}

/// seq, queue, bucket, crowd, score, due.
pub(crate) fn waiting_of(row: &Row, at: usize) -> Result<Waiting> {
    Ok(Waiting {
        seq: TaskSeq(get(row, at)?),
        queue: get(row, at + 1)?,
        bucket: bucket(row, at + 2)?,
        crowd: get(row, at + 3)?,
        score: get(row, at + 4)?,
        due: time(row, at + 5)?,
    })
}

/// seq, queue, bucket, crowd, score, due, place, phase; none if there is no task.
pub(crate) fn maybe_head(row: &Row, at: usize) -> Result<Option<Head>> {
    if maybe_seq(row, at)?.is_none() {
        return Ok(None);
    }
    Ok(Some(Head { place: get(row, at + 6)?, phase: phase(row, at + 7)?, next: waiting_of(row, at)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(number: i64, last: i64) -> Object {
        Object { number, last: EventId::from_i64(last), sent: vec![] }
    }

    #[test]
    fn of_what_others_touched_only_that_is_known_which_they_told() {
        let mut seen = Seen::default();
        let name = |number: i64| (Tenant::default(), number.to_string());
        for number in 1..=4 {
            seen.learn(name(number), Some(object(number, 1)));
            seen.lanes.fetched(lane_number(number, 7), vec![], KNOWN);
        }
        seen.hear(vec![
            Heard { number: 1, object: Became::Now(object(1, 2)), empty: vec![7] },
            Heard { number: 2, object: Became::Otherwise, empty: vec![] },
            Heard { number: 3, object: Became::AsBefore, empty: vec![] },
            Heard { number: 9, object: Became::Now(object(9, 2)), empty: vec![7] },
        ]);
        let last = |number: i64| seen.object(&name(number)).flatten().map(|object| object.last.as_i64());
        assert_eq!([1, 2, 3, 4].map(last), [Some(2), None, Some(1), Some(1)]);
        let knows = |number: i64| seen.knows(&name(number), 7);
        assert_eq!([1, 2, 3, 4].map(knows), [true, false, false, true]);
        assert!(
            seen.numbered(9).is_none() && !seen.lanes.knows_head(lane_number(9, 7)),
            "nobody here knows it"
        );
    }
}

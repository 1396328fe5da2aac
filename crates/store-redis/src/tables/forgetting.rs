//! Removing what is old, a piece at a time.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::error::Result;
use pointsman_store::row::Past;

use super::RedisTables;
use crate::codec::{Ordered, digits, ordered};
use crate::keys::{Index, Table, bucket};
use crate::link::{Words, words};
use crate::lookup::number_of;
use crate::sight::{Question, Way, strings};
use crate::{places, rows};

/// So many things at most are looked at in one transaction: whoever emits meanwhile waits for it.
const PIECE: usize = 500;
/// So many buckets of ended tasks are looked through for old ones.
const BUCKETS: usize = 4;
/// So many deeds are looked at first: mostly there are few to forget.
const FIRST_DEEDS: i64 = 16;
/// So many words go into one command.
const WORDS: usize = 1_000;

const EVERYTHING: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

impl RedisTables {
    pub(super) fn forget_events(&self, after: EventId, forgotten: EventId) -> Result<(u64, Option<EventId>)> {
        let from = EventId::from_i64(after.as_i64() + 1);
        let events = self.sight.events(from, forgotten, Way::Up, PIECE)?;
        let go_on = events.last().filter(|_| events.len() == PIECE).map(|(id, _)| *id);
        let mut found = Vec::with_capacity(events.len());
        for (id, row) in &events {
            found.push(rows::unpack_event(*id, row)?);
        }
        let own: Vec<TaskSeq> = found.iter().flat_map(|journaled| journaled.own_tasks()).collect();
        self.sight.foresee_tasks(&own)?;
        let mut dropped = 0;
        for journaled in found {
            if !self.has_unfinished_tasks(&journaled)? {
                self.sight.drop_event(journaled.event.id);
                dropped += 1;
            }
        }
        self.forget_marks(forgotten)?;
        if dropped > 0 {
            self.forget_causes(forgotten);
        }
        Ok((dropped, go_on))
    }

    /// Nobody asks what a forgotten event caused.
    fn forget_causes(&self, forgotten: EventId) {
        let end = [b"(", &*Ordered::of(forgotten.as_i64() + 1).done()].concat();
        self.sight.also(words!["ZREMRANGEBYLEX", self.sight.keys.index(&Index::Caused), "-", end]);
    }

    /// One mark stays behind: it says how many events there were before it.
    fn forget_marks(&self, forgotten: EventId) -> Result<()> {
        let marks = self.sight.members(&Index::Marks, EVERYTHING, Way::Up, PIECE)?;
        let mut old = Vec::new();
        for mark in marks {
            if ordered(&mark, 1)? > forgotten.as_i64() {
                break;
            }
            old.push(mark);
        }
        old.pop();
        old.into_iter().for_each(|mark| self.sight.remove(Index::Marks, mark));
        Ok(())
    }

    pub(super) fn forget_ended(&self, surplus: i64, before: Timestamp) -> Result<(u64, bool)> {
        let surplus = usize::try_from(surplus).unwrap_or(0);
        let buckets = self.sight.members(&Index::EndedBuckets, EVERYTHING, Way::Up, BUCKETS)?;
        let (mut gone, mut looked_at, many) = (Gone::default(), 0, buckets.len() == BUCKETS);
        for member in buckets {
            for past in self.sight.ended_in_bucket(ordered(&member, 0)?)? {
                // Those that come later were journaled later.
                let journaled = past.event.map_or(past.created, EventId::timestamp);
                if gone.tasks >= PIECE || (gone.tasks >= surplus && journaled >= before) {
                    return Ok((self.drop_gone(&gone), gone.tasks >= PIECE));
                }
                looked_at += 1;
                if looked_at <= surplus || past.finished < before {
                    self.drop_past(&past, &mut gone)?;
                }
            }
        }
        Ok((self.drop_gone(&gone), many && gone.tasks > 0))
    }

    /// Removes an ended task. Its attempts, its log and what 002 tells of it go together with those of others.
    fn drop_past(&self, past: &Past, gone: &mut Gone) -> Result<()> {
        gone.tasks += 1;
        gone.keys.push(self.sight.keys.table(&Table::Attempts(past.seq)));
        gone.keys.extend(self.log_key(past.seq)?);
        if let Some([key, history, id]) = self.documented(past)? {
            gone.keys.push(key);
            gone.histories.entry(history).or_default().push(id);
        }
        let (bucket, field) = bucket(past.seq);
        self.sight.delete(Table::Ended(bucket), field);
        places::of_past(past).into_iter().for_each(|(index, member)| self.sight.remove(index, member));
        Ok(())
    }

    /// Removes what belongs to forgotten tasks; answers how many these are.
    fn drop_gone(&self, gone: &Gone) -> u64 {
        for keys in gone.keys.chunks(WORDS) {
            self.sight.also([&words!["UNLINK"], keys].concat());
        }
        for (history, ids) in &gone.histories {
            for ids in ids.chunks(WORDS) {
                self.sight.also([&words!["ZREM", history], ids].concat());
            }
        }
        gone.tasks as u64
    }

    pub(super) fn forget_answers(&self, before: Timestamp) -> Result<bool> {
        self.drop_older(&Table::Answers, &Index::AnswersByAge, before)
    }

    pub(super) fn drop_old_ended_orders(&self, before: Timestamp) -> Result<bool> {
        self.drop_older(&Table::EndedOrders, &Index::EndedOrdersByAge, before)
    }

    /// Deletes some rows from before then, whose index has their time and then their field; whether there may be more.
    fn drop_older(&self, table: &Table, by_age: &Index, before: Timestamp) -> Result<bool> {
        let end = Ordered::of(before.micros()).done();
        let old = (Bound::Unbounded, Bound::Excluded(&*end));
        let old = self.sight.members(by_age, old, Way::Up, PIECE)?;
        let more = old.len() == PIECE;
        for member in old {
            self.sight.delete(table.clone(), member.get(8..).unwrap_or_default());
            self.sight.remove(by_age.clone(), member);
        }
        Ok(more)
    }

    pub(super) fn forget_records(&self, before: Timestamp) -> Result<bool> {
        let fires = self.forget_fires(before)?;
        for node in self.sight.node_rows(false)? {
            if node.gone && node.heard < before {
                self.sight.delete(Table::Nodes, node.id.to_string());
            }
        }
        Ok(self.forget_deeds(before)? || fires)
    }

    fn forget_fires(&self, before: Timestamp) -> Result<bool> {
        let end = Ordered::of(before.micros()).done();
        let old = (Bound::Unbounded, Bound::Excluded(&*end));
        let old = self.sight.members(&Index::FiresByAge, old, Way::Up, PIECE)?;
        let more = old.len() == PIECE;
        for member in old {
            let planned = ordered(&member, 1)?;
            let schedule = rows::of_text(member.get(16..).unwrap_or_default())?;
            self.sight.delete(Table::Fires(schedule.clone()), planned.to_string());
            self.sight.remove(Index::FireTimes(schedule), Ordered::of(planned).done());
            self.sight.remove(Index::FiresByAge, member);
        }
        Ok(more)
    }

    /// Deeds are numbered as they come, so that the oldest are the first. A number that is not there is passed over once.
    fn forget_deeds(&self, before: Timestamp) -> Result<bool> {
        let (first, end) = (self.first_deed()?, self.standing.borrow().deeds + 1);
        let (mut next, mut step, last) = (first, FIRST_DEEDS, end.min(first + PIECE as i64));
        let mut still_there = None;
        while next < last {
            let some = next..last.min(next + step);
            let row = |n: i64| Question::Row(Table::Deeds, digits(n));
            self.sight.look(some.clone().map(row).collect())?;
            for n in some {
                let row = self.sight.row(Table::Deeds, n.to_string())?;
                let Some(deed) = row.map(|row| rows::unpack_deed(&row)).transpose()? else { continue };
                // What is removed now is there again if the commit fails.
                still_there = still_there.or(Some(n));
                if deed.at >= before {
                    self.first_deed.set(still_there);
                    return Ok(false);
                }
                self.sight.delete(Table::Deeds, n.to_string());
            }
            (next, step) = (next + step, step * 4);
        }
        self.first_deed.set(still_there.or(Some(last)));
        Ok(last < end)
    }

    /// Where deeds begin.
    fn first_deed(&self) -> Result<i64> {
        if let Some(known) = self.first_deed.get() {
            return Ok(known);
        }
        let fields = strings(self.sight.link.ask(words!["HKEYS", self.sight.keys.table(&Table::Deeds)])?)?;
        let numbers: Vec<i64> = fields.iter().map(|field| number_of(field)).collect::<Result<_>>()?;
        Ok(numbers.into_iter().min().unwrap_or(self.standing.borrow().deeds + 1))
    }
}

/// What belongs to tasks that are forgotten, and lies in keys that no row tells of.
#[derive(Debug, Default)]
struct Gone {
    tasks: usize,
    keys: Words,
    /// Histories of pairs, and who is no longer in them.
    histories: BTreeMap<Vec<u8>, Words>,
}

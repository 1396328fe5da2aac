//! The journal, and how far everything has come.

use pointsman_core::{EventId, TaskSeq};
use pointsman_store::error::{Fault, Result};
use pointsman_store::transfer::{Cell, Page, Place, Row};

use super::RedisMove;
use super::cells::row;
use super::columns::row_of_event;
use crate::codec::{Ordered, ordered};
use crate::keys::Index;
use crate::link::{Words, words};
use crate::read::Chunk;
use crate::rows::{self, Journaled};
use crate::sight::{Bytes, after_prefix, entries, int_of, strings};

/// Forgotten events that lie there all the same, and how many of them unfinished tasks need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Old {
    lying: u64,
    needed: u64,
}

impl RedisMove {
    /// The one row of the section. The newest event is told by the journal: an id may have been given that no event has got.
    pub(super) fn counters(&mut self) -> Result<Row> {
        let standing = self.standing()?;
        let counters = standing.counters;
        let (all, old) = (self.journal_length()?, self.old()?);
        let newest =
            entries(self.ask(words!["XREVRANGE", self.keys().journal(), "+", "-", "COUNT", "1"])?)?;
        let newest = newest.first().map_or(EventId::ZERO, |(id, _)| *id);
        let seen = i64::try_from(all - old.lying).map_err(Fault::damaged)?;
        Ok(row![
            self.sight().number("realm")?.cast_signed(),
            self.sight().number("salt")?.cast_signed(),
            newest.max(counters.forgotten),
            counters.forgotten,
            counters.journaled - seen,
            counters.journaled,
            counters.tasks,
            counters.fences,
            counters.objects,
            counters.ended,
            standing.nodes,
        ])
    }

    pub(super) fn count_events(&mut self) -> Result<u64> {
        let old = self.old()?;
        Ok(self.journal_length()? - old.lying + old.needed)
    }

    fn journal_length(&self) -> Result<u64> {
        Ok(int_of(self.ask(words!["XLEN", self.keys().journal()])?)?.unsigned_abs())
    }

    fn old(&mut self) -> Result<Old> {
        if let Some(old) = self.seen.old {
            return Ok(old);
        }
        let forgotten = self.standing()?.counters.forgotten;
        let (mut old, mut after, mut chunk) = (Old::default(), EventId::ZERO, Chunk::of(usize::MAX));
        while after < forgotten {
            let found = self.events_behind(after, forgotten, chunk)?;
            let Some((last, _)) = found.last() else { break };
            after = *last;
            chunk = chunk.after(weight(&found));
            old.lying += found.len() as u64;
            old.needed += self.needed(found)?.len() as u64;
        }
        self.seen.old = Some(old);
        Ok(old)
    }

    /// Events that are not forgotten, and those that are but unfinished tasks need them.
    pub(super) fn read_journal(&self, after: Option<&Place>) -> Result<Page> {
        let forgotten = self.standing()?.counters.forgotten;
        let after = after.and_then(|place| place.first()).and_then(Cell::number);
        let mut after = after.map_or(EventId::ZERO, EventId::from_i64);
        let (mut page, mut chunk) = (Page::default(), Chunk::of(usize::MAX));
        while !page.is_full() {
            let mut found = self.events_behind(after, EventId::MAX, chunk)?;
            let Some((last, _)) = found.last() else { break };
            after = *last;
            chunk = chunk.after(weight(&found));
            let young = found.split_off(found.partition_point(|(id, _)| *id <= forgotten));
            let mut events = self.needed(found)?;
            for (id, bytes) in &young {
                events.push(rows::unpack_event(*id, bytes)?);
            }
            for event in events {
                page.push(row![event.event.id], row_of_event(event)?);
            }
        }
        Ok(page)
    }

    fn events_behind(&self, after: EventId, last: EventId, chunk: Chunk) -> Result<Vec<(EventId, Bytes)>> {
        let (from, to) = (format!("({after}-0"), format!("{last}-0"));
        entries(self.ask(words![
            "XRANGE",
            self.keys().journal(),
            from,
            to,
            "COUNT",
            chunk.size().to_string()
        ])?)
    }

    /// Those of these that unfinished tasks need.
    fn needed(&self, events: Vec<(EventId, Bytes)>) -> Result<Vec<Journaled>> {
        if events.is_empty() {
            return Ok(vec![]);
        }
        let mut found = Vec::with_capacity(events.len());
        for (id, bytes) in &events {
            found.push(rows::unpack_event(*id, bytes)?);
        }
        let late: Vec<Words> = found.iter().map(|event| self.late_words(event.event.id)).collect();
        let mut tasks: Vec<Vec<TaskSeq>> = Vec::with_capacity(found.len());
        for (event, late) in found.iter().zip(self.sight().link.send(&late)?) {
            let late = strings(late)?;
            let late = late.iter().map(|member| ordered(member, 1).map(TaskSeq));
            tasks.push(event.own_tasks().map(Ok).chain(late).collect::<Result<_>>()?);
        }
        self.sight().foresee_tasks(&tasks.concat())?;
        let mut needed = Vec::new();
        for (event, tasks) in found.into_iter().zip(tasks) {
            if !self.sight().tasks(tasks)?.is_empty() {
                needed.push(event);
            }
        }
        self.sight().settle();
        Ok(needed)
    }

    /// Asks for the late tasks of an event, unfinished or ended.
    fn late_words(&self, event: EventId) -> Words {
        let from = Ordered::of(event.as_i64()).done();
        let to = after_prefix(&from).map_or(b"+".to_vec(), |end| [b"(", &*end].concat());
        words!["ZRANGE", self.keys().index(&Index::Late), [b"[", &*from].concat(), to, "BYLEX"]
    }
}

fn weight(events: &[(EventId, Bytes)]) -> usize {
    events.iter().map(|(_, bytes)| bytes.len()).sum()
}

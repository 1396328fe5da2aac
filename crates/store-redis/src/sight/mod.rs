//! What is seen of Redis: rows, indexes and events, as they are with all that was written and not yet sent.
//!
//! Redis has no transactions that one could read and write in. So what is written is held back here, every look takes it
//! into account, and the commit sends it all at once. What was looked at is remembered: each way there and back costs.

mod events;
mod indexes;
mod lanes;
mod questions;
mod rows;
mod touched;

use std::cell::RefCell;
use std::ops::Bound;
use std::sync::Arc;

use pointsman_core::{EventId, TaskSeq};
use pointsman_store::error::Result;

use crate::batch::Batch;
use crate::codec::Member;
use crate::keys::{Index, Keys, Table, task_row};
use crate::link::{Link, Words};
use events::Events;
use indexes::Indexes;
use indexes::prefixed;
pub(crate) use indexes::{Way, after_prefix};
pub(crate) use questions::{Glimpse, Question, entries, int_of, list, maybe_bytes, strings, text_of};
use rows::Rows;
pub(crate) use touched::Touched;

pub(crate) type Bytes = Arc<[u8]>;

pub(crate) struct Sight {
    pub(crate) link: Link,
    pub(crate) keys: Keys,
    rows: RefCell<Rows>,
    indexes: RefCell<Indexes>,
    events: RefCell<Events>,
    /// Commands beside those for rows, indexes and events.
    also: RefCell<Vec<Words>>,
}

impl Sight {
    pub(crate) fn new(link: Link, keys: Keys) -> Self {
        Self {
            link,
            keys,
            rows: RefCell::default(),
            indexes: RefCell::default(),
            events: RefCell::default(),
            also: RefCell::default(),
        }
    }

    /// Forgets all that was seen, and all that was written and not sent.
    pub(crate) fn forget(&self) {
        self.rows.take();
        self.indexes.take();
        self.events.take();
        self.also.take();
    }

    /// What of all that may be remembered was written and not yet sent.
    pub(crate) fn touched(&self) -> Touched {
        let mut touched = Touched::default();
        self.rows.borrow().touched(&mut touched);
        touched.lanes = self.indexes.borrow().touched_lanes();
        touched
    }

    /// Forgets what others have written.
    pub(crate) fn hear(&self, touched: &Touched) {
        self.rows.borrow_mut().hear(touched);
        self.indexes.borrow_mut().hear(touched);
    }

    /// What was written has been sent: it is what is there now. What will hardly be looked at again is forgotten.
    pub(crate) fn settle(&self) {
        self.rows.borrow_mut().settle();
        self.indexes.borrow_mut().settle();
        self.events.take();
        self.also.take();
    }

    // --- rows ----------------------------------------------------------------------------------------------------

    pub(crate) fn row(&self, table: Table, field: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        if let Some(known) = self.rows.borrow().find(&table, field.as_ref()) {
            return Ok(known.cloned());
        }
        self.look(vec![Question::Row(table.clone(), field.as_ref().into())])?;
        Ok(self.rows.borrow().find(&table, field.as_ref()).flatten().cloned())
    }

    /// Whether a row is known to be there.
    pub(crate) fn is_there(&self, table: &Table, field: &[u8]) -> bool {
        self.if_there(table, field, |_| ()).is_some()
    }

    /// Reads a row that is known to be there.
    pub(crate) fn if_there<T>(
        &self,
        table: &Table,
        field: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        self.rows.borrow().find(table, field).flatten().map(|row| read(row))
    }

    /// All rows of a table, by field.
    pub(crate) fn all(&self, table: Table) -> Result<Vec<(Member, Bytes)>> {
        if !self.rows.borrow().is_whole(&table) {
            self.look(vec![Question::Table(table.clone())])?;
        }
        Ok(self.rows.borrow().all(&table))
    }

    pub(crate) fn put(&self, table: Table, field: impl AsRef<[u8]>, value: Vec<u8>) {
        self.rows.borrow_mut().put(table, field.as_ref(), Some(value.into()));
    }

    pub(crate) fn delete(&self, table: Table, field: impl AsRef<[u8]>) {
        self.rows.borrow_mut().put(table, field.as_ref(), None);
    }

    // --- indexes -------------------------------------------------------------------------------------------------

    pub(crate) fn add(&self, index: Index, member: impl Into<Member>) {
        self.indexes.borrow_mut().add(index, member.into());
    }

    pub(crate) fn remove(&self, index: Index, member: impl Into<Member>) {
        self.indexes.borrow_mut().remove(index, member.into());
    }

    /// The members of an index between two bounds, in their order or from the last on, at most so many.
    pub(crate) fn members(
        &self,
        index: &Index,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        way: Way,
        most: usize,
    ) -> Result<Vec<Member>> {
        let removed = self.indexes.borrow().removed_between(index, (lower, upper));
        let ask = most.saturating_add(removed);
        let answer = self.link.ask(indexes::range_words(self.keys.index(index), (lower, upper), way, ask))?;
        let found = questions::members(answer)?;
        Ok(self.indexes.borrow().merge(index, (lower, upper), way, most, found))
    }

    /// All members that begin with these bytes.
    pub(crate) fn beginning_with(&self, index: &Index, prefix: &[u8], most: usize) -> Result<Vec<Member>> {
        let end = after_prefix(prefix);
        self.members(index, prefixed(prefix, end.as_deref()), Way::Up, most)
    }

    /// Who stands first in a lane, and where.
    pub(crate) fn first_in_lane(&self, lane: i64) -> Result<Option<(i64, TaskSeq)>> {
        self.look(vec![Question::Lane(lane)])?;
        Ok(self.indexes.borrow().first_in_lane(lane).first().copied())
    }

    /// Nobody was in this lane when the transaction began.
    pub(crate) fn knows_empty_at_first(&self, lane: i64) -> Result<()> {
        self.indexes.borrow_mut().knows_empty_at_first(lane)
    }

    /// Looks at the tasks that stand first in these lanes, so many of each, as far as it is known who does.
    pub(crate) fn look_at_heads(&self, lanes: impl Iterator<Item = i64>, most: usize) -> Result<()> {
        let unknown: Vec<Question> = {
            let (indexes, rows) = (self.indexes.borrow(), self.rows.borrow());
            let heads = lanes.flat_map(|lane| indexes.first_in_lane(lane).iter().take(most));
            let heads = heads.map(|(_, seq)| task_row(*seq));
            heads.filter(|(table, field)| rows.find(table, field).is_none()).map(Question::from).collect()
        };
        self.look(unknown)
    }

    /// How many members were taken out of an index in this transaction.
    pub(crate) fn removed_from(&self, index: &Index) -> usize {
        self.indexes.borrow().removed_between(index, (Bound::Unbounded, Bound::Unbounded))
    }

    /// The first members of an index, if Redis has found these.
    pub(crate) fn merged(&self, index: &Index, way: Way, most: usize, found: Vec<Member>) -> Vec<Member> {
        self.indexes.borrow().merge(index, (Bound::Unbounded, Bound::Unbounded), way, most, found)
    }

    // --- events --------------------------------------------------------------------------------------------------

    /// Adds an event, which is younger than all others.
    pub(crate) fn append(&self, id: EventId, value: Vec<u8>) {
        self.events.borrow_mut().append(id, value.into());
    }

    pub(crate) fn drop_event(&self, id: EventId) {
        self.events.borrow_mut().delete(id);
    }

    pub(crate) fn event(&self, id: EventId) -> Result<Option<Bytes>> {
        if let Some(known) = self.events.borrow().get(id) {
            return Ok(known);
        }
        self.look(vec![Question::Event(id)])?;
        Ok(self.events.borrow().get(id).flatten())
    }

    /// Events between two ids, both included, at most so many.
    pub(crate) fn events(
        &self,
        from: EventId,
        to: EventId,
        way: Way,
        most: usize,
    ) -> Result<Vec<(EventId, Bytes)>> {
        if from > to {
            return Ok(vec![]);
        }
        let words = events::range_words(self.keys.journal(), from, to, way, most);
        let found = questions::entries(self.link.ask(words)?)?;
        Ok(self.events.borrow().merge(found, from, to, way, most))
    }

    // --- the rest ------------------------------------------------------------------------------------------------

    /// A command that goes along with the commit.
    pub(crate) fn also(&self, words: Words) {
        self.also.borrow_mut().push(words);
    }

    /// The commands for all that was written.
    pub(crate) fn writes(&self) -> Batch {
        let mut writes = Batch::default();
        self.events.borrow().write(&self.keys, &mut writes);
        self.rows.borrow().write(&self.keys, &mut writes);
        self.indexes.borrow().write(&self.keys, &mut writes);
        self.rows.borrow().prune(&self.keys, &mut writes);
        self.also.borrow().iter().for_each(|words| writes.write(words));
        writes
    }
}

impl std::fmt::Debug for Sight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sight").field("link", &self.link).finish()
    }
}

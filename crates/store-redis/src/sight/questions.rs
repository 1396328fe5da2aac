//! Looking at many things in one way there and back, and reading what Redis answers.

use std::collections::BTreeMap;

use pointsman_core::EventId;
use pointsman_store::error::{Fault, Result};
use redis::Value;

use super::indexes::{Way, after_prefix, prefixed, range_words};
use super::{Bytes, Sight, events};
use crate::codec::{Member, Ordered};
use crate::keys::{Index, Table};
use crate::link::{Words, word, words};

/// Something to look at.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    Row(Table, Member),
    Table(Table),
    /// Who stands first in a lane.
    Lane(i64),
    Event(EventId),
}

impl From<(Table, Member)> for Question {
    fn from((table, field): (Table, Member)) -> Self {
        Self::Row(table, field)
    }
}

/// A command, and what its answer is of.
enum Asked {
    Rows(Table, Vec<Member>),
    Table(Table),
    Lane(i64),
    Event(EventId),
}

/// What was asked for, and what Redis answered.
#[must_use]
pub(crate) struct Glimpse(Vec<(Asked, Value)>);

impl Sight {
    /// Looks at all of these, so far as they are not known, and remembers what was seen.
    pub(crate) fn look(&self, questions: Vec<Question>) -> Result<()> {
        self.look_after(vec![], questions).map(drop)
    }

    /// The same behind other commands, whose answers are answered.
    pub(crate) fn look_after(&self, before: Vec<Words>, questions: Vec<Question>) -> Result<Vec<Value>> {
        let (answers, seen) = self.glance_after(before, questions)?;
        self.remember(seen)?;
        Ok(answers)
    }

    /// The same, but what was seen is remembered only if that is said.
    pub(crate) fn glance_after(
        &self,
        before: Vec<Words>,
        questions: Vec<Question>,
    ) -> Result<(Vec<Value>, Glimpse)> {
        let asked = self.unknown(questions);
        let count = before.len();
        let mut commands = before;
        commands.extend(asked.iter().map(|asked| self.words_of(asked)));
        if commands.is_empty() {
            return Ok((vec![], Glimpse(vec![])));
        }
        let mut answers = self.link.send(&commands)?;
        let seen = answers.split_off(count.min(answers.len()));
        Ok((answers, Glimpse(asked.into_iter().zip(seen).collect())))
    }

    pub(crate) fn remember(&self, seen: Glimpse) -> Result<()> {
        seen.0.into_iter().try_for_each(|(asked, answer)| self.remember_one(asked, answer))
    }

    /// The commands for what is not known: one for all rows of a table.
    fn unknown(&self, questions: Vec<Question>) -> Vec<Asked> {
        let mut rows: BTreeMap<Table, Vec<Member>> = BTreeMap::new();
        let mut asked = Vec::new();
        for question in questions {
            match question {
                Question::Row(table, field) => {
                    if self.rows.borrow().find(&table, &field).is_none() {
                        rows.entry(table).or_default().push(field);
                    }
                }
                Question::Table(table) => {
                    if !self.rows.borrow().is_whole(&table) {
                        asked.push(Asked::Table(table));
                    }
                }
                Question::Lane(lane) => {
                    if !self.indexes.borrow().knows_lane(lane) {
                        asked.push(Asked::Lane(lane));
                    }
                }
                Question::Event(id) => {
                    if self.events.borrow().get(id).is_none() {
                        asked.push(Asked::Event(id));
                    }
                }
            }
        }
        asked.extend(rows.into_iter().map(|(table, fields)| Asked::Rows(table, fields)));
        asked
    }

    fn words_of(&self, asked: &Asked) -> Words {
        match asked {
            Asked::Rows(Table::LastIds, objects) => {
                let ids = objects.iter().map(|object| self.keys.last_id(object));
                [word("MGET")].into_iter().chain(ids).collect()
            }
            Asked::Rows(table, fields) => {
                words!["HMGET", self.keys.table(table)].into_iter().chain(fields.iter().map(word)).collect()
            }
            Asked::Table(table) => words!["HGETALL", self.keys.table(table)],
            Asked::Lane(lane) => {
                let prefix = Ordered::of(*lane).done();
                let end = after_prefix(&prefix);
                let most = self.indexes.borrow().most_of_lane(*lane);
                let bounds = prefixed(&prefix, end.as_deref());
                range_words(self.keys.index(&Index::Lanes), bounds, Way::Up, most)
            }
            Asked::Event(id) => {
                let id = events::entry(*id);
                words!["XRANGE", self.keys.journal(), &id, &id]
            }
        }
    }

    fn remember_one(&self, asked: Asked, answer: Value) -> Result<()> {
        match asked {
            Asked::Rows(table, fields) => {
                let mut rows = self.rows.borrow_mut();
                for (field, value) in fields.into_iter().zip(list(answer)?) {
                    rows.fetched(&table, field, maybe_bytes(value)?);
                }
            }
            Asked::Table(table) => self.rows.borrow_mut().fetched_all(table, pairs(answer)?),
            Asked::Lane(lane) => self.indexes.borrow_mut().fetched_lane(lane, members(answer)?)?,
            Asked::Event(id) => {
                let value = entries(answer)?.pop().map(|(_, value)| value);
                self.events.borrow_mut().fetched(id, value);
            }
        }
        Ok(())
    }

    /// An event that a script has found.
    pub(crate) fn saw_event(&self, id: EventId, value: Bytes) {
        self.events.borrow_mut().fetched(id, Some(value));
    }

    /// A row that a script has found.
    pub(crate) fn saw_row(&self, table: &Table, field: Member, value: Bytes) {
        self.rows.borrow_mut().fetched(table, field, Some(value));
    }
}

fn strange(what: &str) -> Fault {
    Fault::damaged(format!("Redis answered something else than {what}"))
}

pub(crate) fn list(answer: Value) -> Result<Vec<Value>> {
    match answer {
        Value::Array(values) => Ok(values),
        Value::Nil => Ok(vec![]),
        _ => Err(strange("a list")),
    }
}

pub(crate) fn maybe_bytes(answer: Value) -> Result<Option<Bytes>> {
    match answer {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => Ok(Some(bytes.into())),
        Value::SimpleString(text) => Ok(Some(text.into_bytes().into())),
        Value::Int(number) => Ok(Some(number.to_string().into_bytes().into())),
        Value::Okay => Ok(Some(b"OK".as_slice().into())),
        _ => Err(strange("a string")),
    }
}

pub(crate) fn text_of(answer: Value) -> Result<String> {
    let bytes = maybe_bytes(answer)?.ok_or_else(|| strange("a string"))?;
    String::from_utf8(bytes.to_vec()).map_err(Fault::damaged)
}

pub(crate) fn int_of(answer: Value) -> Result<i64> {
    match answer {
        Value::Int(number) => Ok(number),
        _ => Err(strange("a number")),
    }
}

pub(crate) fn strings(answer: Value) -> Result<Vec<Vec<u8>>> {
    let strings = list(answer)?.into_iter().map(|value| match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(strange("a list of strings")),
    });
    strings.collect()
}

/// Members of an index.
pub(crate) fn members(answer: Value) -> Result<Vec<Member>> {
    Ok(strings(answer)?.iter().map(|member| Member::from_slice(member)).collect())
}

/// Names and values, which come one after the other.
fn pairs(answer: Value) -> Result<Vec<(Member, Bytes)>> {
    let strings = strings(answer)?;
    let mut pairs = Vec::with_capacity(strings.len() / 2);
    let mut strings = strings.into_iter();
    while let (Some(name), Some(value)) = (strings.next(), strings.next()) {
        pairs.push((name.into(), value.into()));
    }
    Ok(pairs)
}

/// Entries of the journal.
pub(crate) fn entries(answer: Value) -> Result<Vec<(EventId, Bytes)>> {
    let entry = |value: Value| {
        let mut parts = list(value)?.into_iter();
        let name = text_of(parts.next().unwrap_or(Value::Nil))?;
        let id = name.strip_suffix("-0").and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| Fault::damaged(format!("the journal has an entry {name}")))?;
        let fields = strings(parts.next().unwrap_or(Value::Nil))?;
        let value = fields.into_iter().nth(1).ok_or_else(|| strange("an event"))?;
        Ok((id, value.into()))
    };
    list(answer)?.into_iter().map(entry).collect()
}

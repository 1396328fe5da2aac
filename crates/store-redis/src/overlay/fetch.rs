//! Fetches many uncached items in one round trip, and decodes replies of Redis.

use std::collections::BTreeMap;

use pointsman_core::EventId;
use pointsman_store::error::{Fault, TableResult};
use redis::Value;

use super::indexes::{ScanOrder, end_of_prefix, member_range_command, prefix_bounds};
use super::{Bytes, TransactionOverlay, events};
use crate::codec::{MemberBuilder, MemberOrField};
use crate::connection::{CommandArgs, args, to_arg};
use crate::keys::{Index, Table};

/// An item to fetch into the cache.
#[derive(Clone, Debug)]
pub(crate) enum CacheFetch {
    Row(Table, MemberOrField),
    Table(Table),
    /// The first members of a lane.
    Lane(i64),
    Event(EventId),
}

impl From<(Table, MemberOrField)> for CacheFetch {
    fn from((table, field): (Table, MemberOrField)) -> Self {
        Self::Row(table, field)
    }
}

/// A command that fetches items: those that its reply contains.
enum FetchCommand {
    Rows(Table, Vec<MemberOrField>),
    Table(Table),
    Lane(i64),
    Event(EventId),
}

/// Fetch commands with their replies.
#[must_use]
pub(crate) struct FetchedReplies(Vec<(FetchCommand, Value)>);

impl TransactionOverlay {
    /// Fetches the uncached ones of these items and caches them.
    pub(crate) fn fetch_into_cache(&mut self, fetches: Vec<CacheFetch>) -> TableResult<()> {
        self.fetch_after_commands(vec![], fetches).map(drop)
    }

    /// Like [`Self::fetch_into_cache`], but sends other commands first in the same round trip, and returns their replies.
    pub(crate) fn fetch_after_commands(
        &mut self,
        commands_before: Vec<CommandArgs>,
        fetches: Vec<CacheFetch>,
    ) -> TableResult<Vec<Value>> {
        let (replies, fetched) = self.fetch_without_caching(commands_before, fetches)?;
        self.cache_fetched(fetched)?;
        Ok(replies)
    }

    /// Like [`Self::fetch_after_commands`], but returns the fetched items instead of caching them.
    pub(crate) fn fetch_without_caching(
        &mut self,
        commands_before: Vec<CommandArgs>,
        fetches: Vec<CacheFetch>,
    ) -> TableResult<(Vec<Value>, FetchedReplies)> {
        let uncached = self.plan_fetch_commands(fetches);
        let count = commands_before.len();
        let mut commands = commands_before;
        commands.extend(uncached.iter().map(|command| self.encode_fetch_command(command)));
        if commands.is_empty() {
            return Ok((vec![], FetchedReplies(vec![])));
        }
        let mut replies = self.connection.execute_all(&commands)?;
        let fetched = replies.split_off(count.min(replies.len()));
        Ok((replies, FetchedReplies(uncached.into_iter().zip(fetched).collect())))
    }

    pub(crate) fn cache_fetched(&mut self, fetched: FetchedReplies) -> TableResult<()> {
        fetched.0.into_iter().try_for_each(|(command, reply)| self.cache_fetched_reply(command, reply))
    }

    /// Returns the commands that fetch those items that are not cached: one for all rows of the same table.
    fn plan_fetch_commands(&self, fetches: Vec<CacheFetch>) -> Vec<FetchCommand> {
        let mut rows: BTreeMap<Table, Vec<MemberOrField>> = BTreeMap::new();
        let mut uncached = Vec::new();
        for fetch in fetches {
            match fetch {
                CacheFetch::Row(table, field) => {
                    if self.contents.rows.find_cached(&table, &field).is_none() {
                        rows.entry(table).or_default().push(field);
                    }
                }
                CacheFetch::Table(table) => {
                    if !self.contents.rows.is_table_cached(&table) {
                        uncached.push(FetchCommand::Table(table));
                    }
                }
                CacheFetch::Lane(lane) => {
                    if !self.contents.indexes.is_lane_cached(lane) {
                        uncached.push(FetchCommand::Lane(lane));
                    }
                }
                CacheFetch::Event(id) => {
                    if self.contents.events.find_cached(id).is_none() {
                        uncached.push(FetchCommand::Event(id));
                    }
                }
            }
        }
        uncached.extend(rows.into_iter().map(|(table, fields)| FetchCommand::Rows(table, fields)));
        uncached
    }

    fn encode_fetch_command(&self, command: &FetchCommand) -> CommandArgs {
        match command {
            FetchCommand::Rows(Table::LastEventIds, objects) => {
                let ids = objects.iter().map(|object| self.keys.last_event_id_key(object));
                [to_arg("MGET")].into_iter().chain(ids).collect()
            }
            FetchCommand::Rows(table, fields) => args!["HMGET", self.keys.table_key(table)]
                .into_iter()
                .chain(fields.iter().map(to_arg))
                .collect(),
            FetchCommand::Table(table) => args!["HGETALL", self.keys.table_key(table)],
            FetchCommand::Lane(lane) => {
                let prefix = MemberBuilder::from_i64(*lane).finish();
                let end = end_of_prefix(&prefix);
                let limit = self.contents.indexes.lane_fetch_limit(*lane);
                let bounds = prefix_bounds(&prefix, end.as_deref());
                member_range_command(
                    self.keys.index_key(&Index::LanePositions),
                    bounds,
                    ScanOrder::Ascending,
                    limit,
                )
            }
            FetchCommand::Event(id) => {
                let id = events::stream_entry_id(*id);
                args!["XRANGE", self.keys.journal_key(), &id, &id]
            }
        }
    }

    fn cache_fetched_reply(&mut self, command: FetchCommand, reply: Value) -> TableResult<()> {
        match command {
            FetchCommand::Rows(table, fields) => {
                let rows = &mut self.contents.rows;
                for (field, value) in fields.into_iter().zip(decode_list(reply)?) {
                    rows.cache_row(&table, field, decode_optional_bytes(value)?);
                }
            }
            FetchCommand::Table(table) => self.contents.rows.cache_table(table, decode_pairs(reply)?),
            FetchCommand::Lane(lane) => {
                self.contents.indexes.cache_lane_members(lane, decode_members(reply)?)?
            }
            FetchCommand::Event(id) => {
                let value = decode_journal_entries(reply)?.pop().map(|(_, value)| value);
                self.contents.events.cache_event(id, value);
            }
        }
        Ok(())
    }

    /// Caches an event that a script returned.
    pub(crate) fn cache_event(&mut self, id: EventId, value: Bytes) {
        self.contents.events.cache_event(id, Some(value));
    }

    /// Caches a row that a script returned.
    pub(crate) fn cache_row(&mut self, table: &Table, field: MemberOrField, value: Bytes) {
        self.contents.rows.cache_row(table, field, Some(value));
    }
}

fn unexpected_reply_fault(expected: &str) -> Fault {
    Fault::damaged(format!("Redis replied something else than {expected}"))
}

pub(crate) fn decode_list(reply: Value) -> TableResult<Vec<Value>> {
    match reply {
        Value::Array(values) => Ok(values),
        Value::Nil => Ok(vec![]),
        _ => Err(unexpected_reply_fault("a list")),
    }
}

pub(crate) fn decode_optional_bytes(reply: Value) -> TableResult<Option<Bytes>> {
    match reply {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => Ok(Some(bytes.into())),
        Value::SimpleString(text) => Ok(Some(text.into_bytes().into())),
        Value::Int(number) => Ok(Some(number.to_string().into_bytes().into())),
        Value::Okay => Ok(Some(b"OK".as_slice().into())),
        _ => Err(unexpected_reply_fault("a string")),
    }
}

pub(crate) fn decode_text_reply(reply: Value) -> TableResult<String> {
    let bytes = decode_optional_bytes(reply)?.ok_or_else(|| unexpected_reply_fault("a string"))?;
    String::from_utf8(bytes.to_vec()).map_err(Fault::damaged)
}

pub(crate) fn decode_integer(reply: Value) -> TableResult<i64> {
    match reply {
        Value::Int(number) => Ok(number),
        _ => Err(unexpected_reply_fault("a number")),
    }
}

pub(crate) fn decode_strings(reply: Value) -> TableResult<Vec<Vec<u8>>> {
    let strings = decode_list(reply)?.into_iter().map(|value| match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(unexpected_reply_fault("a list of strings")),
    });
    strings.collect()
}

/// Decodes members of an index.
pub(crate) fn decode_members(reply: Value) -> TableResult<Vec<MemberOrField>> {
    Ok(decode_strings(reply)?.iter().map(|member| MemberOrField::from_slice(member)).collect())
}

/// Decodes a list of alternating fields and values.
fn decode_pairs(reply: Value) -> TableResult<Vec<(MemberOrField, Bytes)>> {
    let strings = decode_strings(reply)?;
    let mut pairs = Vec::with_capacity(strings.len() / 2);
    let mut strings = strings.into_iter();
    while let (Some(field), Some(value)) = (strings.next(), strings.next()) {
        pairs.push((field.into(), value.into()));
    }
    Ok(pairs)
}

/// Decodes entries of the journal stream.
pub(crate) fn decode_journal_entries(reply: Value) -> TableResult<Vec<(EventId, Bytes)>> {
    let decode_entry = |value: Value| {
        let mut parts = decode_list(value)?.into_iter();
        let name = decode_text_reply(parts.next().unwrap_or(Value::Nil))?;
        let id = name.strip_suffix("-0").and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| Fault::damaged(format!("the journal has an entry {name}")))?;
        let fields = decode_strings(parts.next().unwrap_or(Value::Nil))?;
        let value = fields.into_iter().nth(1).ok_or_else(|| unexpected_reply_fault("an event"))?;
        Ok((id, value.into()))
    };
    decode_list(reply)?.into_iter().map(decode_entry).collect()
}

//! Reads rows: small tables at once, others along an index.

use std::ops::Bound;

use pointsman_store::error::{Fault, Result};
use pointsman_store::row::Counts;
use pointsman_store::transfer::{Cell, NOTE, Page, Place, Row, Section};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::RedisStoreCopy;
use super::attempts_and_logs::TaskDataKind;
use super::cells::copy_row;
use super::columns::{encode_ended_order_row, encode_order_row, encode_rule_row};
use super::tasks::TaskTable;
use crate::FIRST_TOKEN_TEXT;
use crate::codec::{Member, RowDecoder, decode_member_i64};
use crate::connection::{CommandArgs, args};
use crate::keys::{Index, Table};
use crate::lookup::{StoredHandler, parse_number};
use crate::overlay::{Bytes, ScanOrder, decode_list, decode_optional_bytes};
use crate::read::ChunkSize;
use crate::rows::{self, NodeRow, decode_text};
use crate::tables::schedules::StoredSchedule;

/// Texts that are not copied.
const EXCLUDED_TEXTS: [&str; 5] = ["layout", "realm", "salt", FIRST_TOKEN_TEXT, NOTE];

/// A stored handler with its raw definition: another version may have more fields.
#[derive(Serialize, Deserialize)]
pub(super) struct RawHandler {
    pub(super) def: Box<RawValue>,
    pub(super) defined: bool,
}

/// A stored chain with its raw definition.
#[derive(Serialize, Deserialize)]
pub(super) struct RawChain {
    pub(super) chain: Box<RawValue>,
    pub(super) defined: bool,
    pub(super) state: Box<RawValue>,
}

/// Reads the rows of index members, one for each.
type RowFetcher<'f> = &'f dyn Fn(&[Member]) -> Result<Vec<Row>>;

impl RedisStoreCopy {
    pub(super) fn count_rows(&mut self, section: Section) -> Result<Option<u64>> {
        if let Some(count) = self.cached_counts.rows_by_section.get(&section) {
            return Ok(Some(*count));
        }
        let length = |table: Table| args!["HLEN", self.keys().table_key(&table)];
        let count = match section {
            Section::Counters => 1,
            Section::Texts => self.read_texts()?.len() as u64,
            Section::Handlers => self.sum_replies(&[length(Table::Handlers)])?,
            Section::Queues => self.sum_replies(&[length(Table::Queues)])?,
            Section::Chains => self.sum_replies(&[length(Table::Chains)])?,
            Section::Rules => self.sum_replies(&[length(Table::Rules)])?,
            Section::Files => self.sum_replies(&[length(Table::FileDigests)])?,
            Section::Nodes => self.sum_replies(&[length(Table::Nodes)])?,
            Section::Schedules => self.sum_replies(&[length(Table::Schedules)])?,
            Section::Journal => self.count_events()?,
            Section::Objects => self.count_objects()?,
            Section::Tasks => self.count_tasks(TaskTable::Active)?,
            Section::Orders => self.sum_replies(&[length(Table::Orders)])?,
            Section::EndedOrders => self.sum_replies(&[length(Table::EndedOrders)])?,
            Section::History => self.count_tasks(TaskTable::Archived)?,
            Section::Attempts => self.count_task_data(TaskDataKind::Attempts)?,
            Section::Logs => self.count_task_data(TaskDataKind::Logs)?,
            Section::Answers => self.sum_replies(&[length(Table::IdempotencyRecords)])?,
            Section::Fires => {
                self.sum_replies(&[args!["ZCARD", self.keys().index_key(&Index::FiresByAge)]])?
            }
            Section::Deeds => self.sum_replies(&[length(Table::AuditEntries)])?,
            Section::Receipts | Section::Keys | Section::Refused | Section::Ahead => return Ok(None),
        };
        self.cached_counts.rows_by_section.insert(section, count);
        Ok(Some(count))
    }

    pub(super) fn read_rows(&mut self, section: Section, after: Option<&Place>) -> Result<Page> {
        if after.is_none() {
            // Reads the stored rows, not cached ones.
            self.overlay().clear();
        }
        match section {
            Section::Counters => Ok(Page::single(self.read_counters()?, after)),
            Section::Texts => Ok(page_of_rows(self.read_texts()?, after)),
            Section::Handlers => Ok(page_of_rows(self.read_handlers()?, after)),
            Section::Queues => Ok(page_of_rows(self.read_queues()?, after)),
            Section::Chains => Ok(page_of_rows(self.read_chains()?, after)),
            Section::Rules => Ok(page_of_rows(
                self.overlay().read_rules()?.into_iter().map(encode_rule_row).collect(),
                after,
            )),
            Section::Files => Ok(page_of_rows(self.read_file_digests()?, after)),
            Section::Nodes => Ok(page_of_rows(self.read_nodes()?, after)),
            Section::Schedules => Ok(page_of_rows(self.read_schedules()?, after)),
            Section::Journal => self.read_journal(after),
            Section::Objects => self.read_objects(after),
            Section::Tasks => self.read_tasks(TaskTable::Active, after),
            Section::Orders => {
                self.read_along_index(&Index::OrderKeys, after, &|found| self.read_orders(found))
            }
            Section::EndedOrders => {
                self.read_along_index(&Index::EndedOrdersByAge, after, &|found| self.read_ended_orders(found))
            }
            Section::History => self.read_tasks(TaskTable::Archived, after),
            Section::Attempts => self.read_task_data(TaskDataKind::Attempts, after),
            Section::Logs => self.read_task_data(TaskDataKind::Logs, after),
            Section::Answers => self.read_along_index(&Index::IdempotencyRecordsByAge, after, &|found| {
                self.read_idempotency_records(found)
            }),
            Section::Fires => {
                self.read_along_index(&Index::FiresByAge, after, &|found| self.read_fires(found))
            }
            Section::Deeds => Ok(page_of_rows(self.read_audit_entries()?, after)),
            Section::Receipts | Section::Keys | Section::Refused | Section::Ahead => Ok(Page::default()),
        }
    }

    /// Reads all rows of a small table, sorted by field.
    fn read_sorted_table(&self, table: Table) -> Result<Vec<(String, Bytes)>> {
        let found = self.overlay().read_table(table)?;
        let mut rows: Vec<(String, Bytes)> =
            found.into_iter().map(|(field, row)| Ok((decode_text(&field)?, row))).collect::<Result<_>>()?;
        rows.sort_unstable();
        Ok(rows)
    }

    fn read_texts(&self) -> Result<Vec<Row>> {
        let texts = self.read_sorted_table(Table::Texts)?.into_iter();
        let texts = texts.filter(|(name, _)| !EXCLUDED_TEXTS.contains(&name.as_str()));
        texts.map(|(name, text)| Ok(copy_row![name, decode_text(&text)?])).collect()
    }

    fn read_handlers(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (id, bytes) in self.overlay().read_numbered_rows(Table::Handlers)? {
            let StoredHandler { def, .. } = rows::decode_json(&bytes)?;
            let name = def.name.to_string();
            let RawHandler { def, defined } = rows::decode_json(&bytes)?;
            let text = |table, none: &str| match self.overlay().read_row(table, id.to_string())? {
                Some(bytes) => decode_text(&bytes),
                None => Ok(none.to_string()),
            };
            let (pace, gaps) = (text(Table::RateLimiters, "")?, text(Table::HandlerGaps, "[]")?);
            rows.push(copy_row![id, name, def.get(), defined, pace, gaps]);
        }
        Ok(rows)
    }

    fn read_queues(&self) -> Result<Vec<Row>> {
        let row = |queue: pointsman_store::row::QueueRow| {
            let Counts { ready, waiting, scheduled, running, halted, missing } = queue.counts;
            let (tenant, of) = (queue.tenant.as_str(), queue.of.text());
            copy_row![
                queue.id,
                queue.handler,
                tenant,
                of,
                ready,
                waiting,
                scheduled,
                running,
                halted,
                missing
            ]
        };
        Ok(self.overlay().read_queues()?.into_iter().map(row).collect())
    }

    fn read_chains(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (path, bytes) in self.read_sorted_table(Table::Chains)? {
            let RawChain { chain, defined, state } = rows::decode_json(&bytes)?;
            let pending = self.overlay().read_row(Table::PendingChainUpdates, &path)?;
            let pending = pending.map(|after| parse_number(&after)).transpose()?;
            rows.push(copy_row![path, chain.get(), defined, state.get(), pending]);
        }
        Ok(rows)
    }

    fn read_file_digests(&self) -> Result<Vec<Row>> {
        let files = self.read_sorted_table(Table::FileDigests)?.into_iter();
        files.map(|(key, digest)| Ok(copy_row![key, decode_text(&digest)?])).collect()
    }

    /// The last heartbeat of live nodes is not copied: they are not live on the target.
    fn read_nodes(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (id, bytes) in self.overlay().read_numbered_rows(Table::Nodes)? {
            let NodeRow { name, joined, last_heartbeat, has_left, capabilities_json } =
                NodeRow::decode(&bytes)?;
            rows.push(copy_row![
                id,
                name,
                joined,
                if has_left { last_heartbeat } else { 0 },
                has_left,
                capabilities_json
            ]);
        }
        Ok(rows)
    }

    fn read_schedules(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (name, bytes) in self.read_sorted_table(Table::Schedules)? {
            let StoredSchedule { row, last_event } = StoredSchedule::decode(&bytes)?;
            rows.push(copy_row![name, row.expression, row.settled, row.unmet, last_event, row.named]);
        }
        Ok(rows)
    }

    /// Reads all audit entries at once: they are few.
    fn read_audit_entries(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (n, bytes) in self.overlay().read_numbered_rows(Table::AuditEntries)? {
            let deed = rows::decode_audit_entry(&bytes)?;
            rows.push(copy_row![n, deed.at, deed.by, deed.action, deed.what, deed.detail]);
        }
        self.overlay().mark_committed();
        Ok(rows)
    }

    /// Reads rows along an index in chunks.
    fn read_along_index(&self, index: &Index, after: Option<&Place>, fetch: RowFetcher<'_>) -> Result<Page> {
        let mut after = match after.and_then(|place| place.first()) {
            Some(Cell::Bytes(member)) => Some(member.clone()),
            Some(Cell::Null | Cell::Number(_) | Cell::Text(_)) | None => None,
        };
        let (mut page, mut chunk) = (Page::default(), ChunkSize::for_limit(usize::MAX));
        while !page.is_full() {
            let lower = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let members = self.overlay().read_members(
                index,
                (lower, Bound::Unbounded),
                ScanOrder::Ascending,
                chunk.rows(),
            )?;
            let Some(last) = members.last() else { break };
            after = Some(last.to_vec());
            let mut weight = 0;
            for (member, row) in members.iter().zip(fetch(&members)?) {
                weight += row.iter().filter_map(Cell::text).map(str::len).sum::<usize>();
                page.push(copy_row![member.to_vec()], row);
            }
            chunk = chunk.next_after(weight);
        }
        Ok(page)
    }

    fn fetch_rows(&self, table: &Table, fields: &[Vec<u8>]) -> Result<Vec<Bytes>> {
        let found =
            decode_list(self.execute([&args!["HMGET", self.keys().table_key(table)], fields].concat())?)?;
        found.into_iter().map(|value| decode_optional_bytes(value)?.ok_or_else(missing_row_fault)).collect()
    }

    fn read_orders(&self, keys: &[Member]) -> Result<Vec<Row>> {
        let keys: CommandArgs = keys.iter().map(|key| key.to_vec()).collect();
        let numbers = self.fetch_rows(&Table::OrderNumbers, &keys)?;
        let fields: CommandArgs = numbers.iter().map(|n| n.to_vec()).collect();
        let orders = self.fetch_rows(&Table::Orders, &fields)?;
        let row =
            |(n, row): (&Bytes, &Bytes)| Ok(encode_order_row(rows::decode_order(parse_number(n)?, row)?));
        numbers.iter().zip(&orders).map(row).collect()
    }

    fn read_ended_orders(&self, members: &[Member]) -> Result<Vec<Row>> {
        let fields: CommandArgs =
            members.iter().map(|member| member.get(8..).unwrap_or_default().to_vec()).collect();
        let found = self.fetch_rows(&Table::EndedOrders, &fields)?;
        found.iter().map(|row| Ok(encode_ended_order_row(rows::decode_ended_order(row)?))).collect()
    }

    fn read_idempotency_records(&self, members: &[Member]) -> Result<Vec<Row>> {
        let fields: CommandArgs =
            members.iter().map(|member| member.get(8..).unwrap_or_default().to_vec()).collect();
        let mut rows = Vec::with_capacity(fields.len());
        for ((member, field), row) in
            members.iter().zip(&fields).zip(self.fetch_rows(&Table::IdempotencyRecords, &fields)?)
        {
            let field = decode_text(field)?;
            let (tenant, key) = field.split_once('/').ok_or_else(missing_row_fault)?;
            let mut row = RowDecoder::new(&row);
            let (digest, answer) = (row.bytes()?.to_vec(), row.text()?);
            rows.push(copy_row![tenant, key, digest, answer, decode_member_i64(member, 0)?]);
        }
        Ok(rows)
    }

    fn read_fires(&self, members: &[Member]) -> Result<Vec<Row>> {
        let mut names = Vec::with_capacity(members.len());
        let mut commands = Vec::with_capacity(members.len());
        for member in members {
            let schedule = decode_text(member.get(16..).unwrap_or_default())?;
            let key = self.keys().table_key(&Table::Fires(schedule.clone()));
            commands.push(args!["HGET", key, decode_member_i64(member, 1)?.to_string()]);
            names.push(schedule);
        }
        let mut rows = Vec::with_capacity(members.len());
        for (schedule, found) in names.into_iter().zip(self.overlay().connection.execute_all(&commands)?) {
            let fire = rows::decode_fire(&decode_optional_bytes(found)?.ok_or_else(missing_row_fault)?)?;
            let outcome = serde_json::to_string(&fire.outcome).map_err(Fault::damaged)?;
            let task = fire.task.as_ref().map(|task| task.as_str());
            rows.push(copy_row![schedule, fire.planned, fire.at, outcome, fire.event, task]);
        }
        Ok(rows)
    }
}

fn missing_row_fault() -> Fault {
    Fault::damaged("an index names a row that does not exist")
}

/// Returns a page of these rows; its position is the number of rows before it.
fn page_of_rows(rows: Vec<Row>, after: Option<&Place>) -> Page {
    let before = after.and_then(|place| place.first()).and_then(Cell::number).unwrap_or(0);
    let mut page = Page::default();
    for (n, row) in (1..).zip(rows).skip(usize::try_from(before).unwrap_or(usize::MAX)) {
        if page.is_full() {
            break;
        }
        page.push(vec![Cell::Number(n)], row);
    }
    page
}

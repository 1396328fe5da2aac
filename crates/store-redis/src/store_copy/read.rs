//! Reads rows: small tables at once, others along an index.

use std::ops::Bound;

use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::QueueCounts;
use pointsman_store::store_copy::{
    COPY_PROGRESS_TEXT_NAME, CopyCursor, CopyPage, CopyRow, CopyValue, TableKind,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::RedisStoreCopy;
use super::attempts_and_logs::AttemptsOrLogs;
use super::cells::copy_row;
use super::row_conversion::{encode_ended_order_row, encode_order_row, encode_rule_row};
use super::tasks::TaskTable;
use crate::codec::{MemberOrField, RowDecoder, decode_member_i64};
use crate::connection::{CommandArgs, args};
use crate::keys::{Index, Table};
use crate::lookup::{StoredHandler, parse_number};
use crate::overlay::{Bytes, ScanOrder, decode_list, decode_optional_bytes};
use crate::read::ChunkSize;
use crate::rows::{self, NodeRow, decode_text};
use crate::{FIRST_TOKEN_HASH_TEXT_NAME, LAYOUT_TEXT_NAME, SALT_TEXT_NAME, TASK_ID_NAMESPACE_TEXT_NAME};

/// Names of the texts that are not copied with the others.
const EXCLUDED_TEXT_NAMES: [&str; 5] = [
    LAYOUT_TEXT_NAME,
    TASK_ID_NAMESPACE_TEXT_NAME,
    SALT_TEXT_NAME,
    FIRST_TOKEN_HASH_TEXT_NAME,
    COPY_PROGRESS_TEXT_NAME,
];

/// A stored handler with its raw definition: another version may have more fields.
#[derive(Serialize, Deserialize)]
pub(super) struct RawHandler {
    pub(super) def: Box<RawValue>,
    #[serde(rename = "defined")]
    pub(super) is_defined: bool,
}

/// A stored chain with its raw definition.
#[derive(Serialize, Deserialize)]
pub(super) struct RawChain {
    pub(super) chain: Box<RawValue>,
    #[serde(rename = "defined")]
    pub(super) is_defined: bool,
    pub(super) state: Box<RawValue>,
}

/// A function that reads the rows of index members, one for each.
type RowFetcher = fn(&mut RedisStoreCopy, &[MemberOrField]) -> TableResult<Vec<CopyRow>>;

impl RedisStoreCopy {
    pub(super) fn count_rows(&mut self, table_kind: TableKind) -> TableResult<Option<u64>> {
        if let Some(count) = self.cached_counts.rows_by_table.get(&table_kind) {
            return Ok(Some(*count));
        }
        let length = |table: Table| args!["HLEN", self.keys().table_key(&table)];
        let count = match table_kind {
            TableKind::Counters => 1,
            TableKind::NamedTexts => self.read_named_texts()?.len() as u64,
            TableKind::Handlers => self.sum_replies(&[length(Table::Handlers)])?,
            TableKind::Queues => self.sum_replies(&[length(Table::Queues)])?,
            TableKind::Chains => self.sum_replies(&[length(Table::Chains)])?,
            TableKind::Rules => self.sum_replies(&[length(Table::Rules)])?,
            TableKind::FileDigests => self.sum_replies(&[length(Table::FileDigests)])?,
            TableKind::Nodes => self.sum_replies(&[length(Table::Nodes)])?,
            TableKind::Schedules => self.sum_replies(&[length(Table::Schedules)])?,
            TableKind::Journal => self.count_events()?,
            TableKind::Objects => self.count_objects()?,
            TableKind::Tasks => self.count_tasks(TaskTable::Active)?,
            TableKind::Orders => self.sum_replies(&[length(Table::Orders)])?,
            TableKind::EndedOrders => self.sum_replies(&[length(Table::EndedOrders)])?,
            TableKind::History => self.count_tasks(TaskTable::Archived)?,
            TableKind::Attempts => self.count_attempts_or_log_lines(AttemptsOrLogs::Attempts)?,
            TableKind::Logs => self.count_attempts_or_log_lines(AttemptsOrLogs::Logs)?,
            TableKind::IdempotencyRecords => self.sum_replies(&[length(Table::IdempotencyRecords)])?,
            TableKind::Fires => {
                self.sum_replies(&[args!["ZCARD", self.keys().index_key(&Index::FiresByAge)]])?
            }
            TableKind::AuditEntries => self.sum_replies(&[length(Table::AuditEntries)])?,
            TableKind::OutboxReceipts
            | TableKind::OutboxKeys
            | TableKind::OutboxRefusals
            | TableKind::UnknownTenantRules => return Ok(None),
        };
        self.cached_counts.rows_by_table.insert(table_kind, count);
        Ok(Some(count))
    }

    pub(super) fn read_table_page(
        &mut self,
        table_kind: TableKind,
        after: Option<&CopyCursor>,
    ) -> TableResult<CopyPage> {
        if after.is_none() {
            // A table is read from Redis again when its first page is read.
            self.overlay().clear();
        }
        match table_kind {
            TableKind::Counters => Ok(CopyPage::single_row(self.read_counters()?, after)),
            TableKind::NamedTexts => Ok(page_of_rows(self.read_named_texts()?, after)),
            TableKind::Handlers => Ok(page_of_rows(self.read_handlers()?, after)),
            TableKind::Queues => Ok(page_of_rows(self.read_queues()?, after)),
            TableKind::Chains => Ok(page_of_rows(self.read_chains()?, after)),
            TableKind::Rules => Ok(page_of_rows(
                self.overlay().read_rules()?.into_iter().map(encode_rule_row).collect(),
                after,
            )),
            TableKind::FileDigests => Ok(page_of_rows(self.read_file_digests()?, after)),
            TableKind::Nodes => Ok(page_of_rows(self.read_nodes()?, after)),
            TableKind::Schedules => Ok(page_of_rows(self.read_schedules()?, after)),
            TableKind::Journal => self.read_page_of_events(after),
            TableKind::Objects => self.read_page_of_objects(after),
            TableKind::Tasks => self.read_page_of_tasks(TaskTable::Active, after),
            TableKind::Orders => self.read_along_index(&Index::ActiveOrderKeys, after, Self::read_orders),
            TableKind::EndedOrders => {
                self.read_along_index(&Index::EndedOrdersByAge, after, Self::read_ended_orders)
            }
            TableKind::History => self.read_page_of_tasks(TaskTable::Archived, after),
            TableKind::Attempts => self.read_page_of_attempts_or_log_lines(AttemptsOrLogs::Attempts, after),
            TableKind::Logs => self.read_page_of_attempts_or_log_lines(AttemptsOrLogs::Logs, after),
            TableKind::IdempotencyRecords => {
                self.read_along_index(&Index::IdempotencyRecordsByAge, after, Self::read_idempotency_records)
            }
            TableKind::Fires => self.read_along_index(&Index::FiresByAge, after, Self::read_fires),
            TableKind::AuditEntries => Ok(page_of_rows(self.read_audit_entries()?, after)),
            TableKind::OutboxReceipts
            | TableKind::OutboxKeys
            | TableKind::OutboxRefusals
            | TableKind::UnknownTenantRules => Ok(CopyPage::default()),
        }
    }

    /// Reads all rows of a small table, sorted by field.
    fn read_sorted_table(&mut self, table: Table) -> TableResult<Vec<(String, Bytes)>> {
        let found = self.overlay().read_table(table)?;
        let mut rows: Vec<(String, Bytes)> = found
            .into_iter()
            .map(|(field, row)| Ok((decode_text(&field)?, row)))
            .collect::<TableResult<_>>()?;
        rows.sort_unstable();
        Ok(rows)
    }

    fn read_named_texts(&mut self) -> TableResult<Vec<CopyRow>> {
        let texts = self.read_sorted_table(Table::NamedTexts)?.into_iter();
        let texts = texts.filter(|(name, _)| !EXCLUDED_TEXT_NAMES.contains(&name.as_str()));
        texts.map(|(name, text)| Ok(copy_row![name, decode_text(&text)?])).collect()
    }

    fn read_handlers(&mut self) -> TableResult<Vec<CopyRow>> {
        let mut rows = Vec::new();
        for (id, bytes) in self.overlay().read_numbered_rows(Table::Handlers)? {
            let StoredHandler { def, .. } = rows::decode_json(&bytes)?;
            let name = def.name.to_string();
            let RawHandler { def, is_defined } = rows::decode_json(&bytes)?;
            let mut read_text_row =
                |table, default: &str| match self.overlay().read_row(table, id.to_string())? {
                    Some(bytes) => decode_text(&bytes),
                    None => Ok(default.to_string()),
                };
            let (rate_limiter, gaps) =
                (read_text_row(Table::RateLimiters, "")?, read_text_row(Table::HandlerGaps, "[]")?);
            rows.push(copy_row![id, name, def.get(), is_defined, rate_limiter, gaps]);
        }
        Ok(rows)
    }

    fn read_queues(&mut self) -> TableResult<Vec<CopyRow>> {
        let row = |queue: pointsman_store::row::QueueRow| {
            let QueueCounts { ready, waiting, scheduled, running, halted, missing } = queue.counts;
            let (tenant, subject) = (queue.tenant.as_str(), queue.subject.to_text());
            copy_row![
                queue.id,
                queue.handler,
                tenant,
                subject,
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

    fn read_chains(&mut self) -> TableResult<Vec<CopyRow>> {
        let mut rows = Vec::new();
        for (path, bytes) in self.read_sorted_table(Table::Chains)? {
            let RawChain { chain, is_defined, state } = rows::decode_json(&bytes)?;
            let pending = self.overlay().read_row(Table::PendingChainReevaluations, &path)?;
            let pending = pending.map(|order| parse_number(&order)).transpose()?;
            rows.push(copy_row![path, chain.get(), is_defined, state.get(), pending]);
        }
        Ok(rows)
    }

    fn read_file_digests(&mut self) -> TableResult<Vec<CopyRow>> {
        let files = self.read_sorted_table(Table::FileDigests)?.into_iter();
        files.map(|(key, digest)| Ok(copy_row![key, decode_text(&digest)?])).collect()
    }

    /// Reads the rows of nodes. Those of live nodes get no last heartbeat: they are not live on the target.
    fn read_nodes(&mut self) -> TableResult<Vec<CopyRow>> {
        let mut rows = Vec::new();
        for (id, bytes) in self.overlay().read_numbered_rows(Table::Nodes)? {
            let NodeRow { name, joined_at, last_heartbeat_at, has_left, capabilities_json } =
                NodeRow::decode(&bytes)?;
            rows.push(copy_row![
                id,
                name,
                joined_at,
                if has_left { last_heartbeat_at } else { 0 },
                has_left,
                capabilities_json
            ]);
        }
        Ok(rows)
    }

    fn read_schedules(&mut self) -> TableResult<Vec<CopyRow>> {
        let mut rows = Vec::new();
        for (name, bytes) in self.read_sorted_table(Table::Schedules)? {
            let row = rows::decode_schedule(&bytes)?;
            rows.push(copy_row![
                name,
                row.expression,
                row.processed_up_to,
                row.next_catch_up,
                row.last_event,
                row.last_registered_at
            ]);
        }
        Ok(rows)
    }

    /// Reads all audit entries at once: they are few.
    fn read_audit_entries(&mut self) -> TableResult<Vec<CopyRow>> {
        let mut rows = Vec::new();
        for (number, bytes) in self.overlay().read_numbered_rows(Table::AuditEntries)? {
            let entry = rows::decode_audit_entry(&bytes)?;
            rows.push(copy_row![number, entry.at, entry.actor, entry.action, entry.target, entry.detail]);
        }
        self.overlay().mark_committed();
        Ok(rows)
    }

    /// Reads a page of rows in the order of an index. The cursor is the last index member.
    fn read_along_index(
        &mut self,
        index: &Index,
        after: Option<&CopyCursor>,
        fetch: RowFetcher,
    ) -> TableResult<CopyPage> {
        let mut after = match after.and_then(|cursor| cursor.first()) {
            Some(CopyValue::Bytes(member)) => Some(member.clone()),
            Some(CopyValue::Null | CopyValue::Number(_) | CopyValue::Text(_)) | None => None,
        };
        let (mut page, mut chunk) = (CopyPage::default(), ChunkSize::for_limit(usize::MAX));
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
            let mut text_bytes = 0;
            for (member, row) in members.iter().zip(fetch(self, &members)?) {
                text_bytes += row.iter().filter_map(CopyValue::as_text).map(str::len).sum::<usize>();
                page.push_row(copy_row![member.to_vec()], row);
            }
            chunk = chunk.next_after(text_bytes);
        }
        Ok(page)
    }

    fn fetch_rows(&mut self, table: &Table, fields: &[Vec<u8>]) -> TableResult<Vec<Bytes>> {
        let found =
            decode_list(self.execute([&args!["HMGET", self.keys().table_key(table)], fields].concat())?)?;
        found.into_iter().map(|value| decode_optional_bytes(value)?.ok_or_else(missing_row_fault)).collect()
    }

    fn read_orders(&mut self, keys: &[MemberOrField]) -> TableResult<Vec<CopyRow>> {
        let keys: CommandArgs = keys.iter().map(|key| key.to_vec()).collect();
        let numbers = self.fetch_rows(&Table::OrderNumbers, &keys)?;
        let fields: CommandArgs = numbers.iter().map(|number| number.to_vec()).collect();
        let orders = self.fetch_rows(&Table::Orders, &fields)?;
        let row = |(number, row): (&Bytes, &Bytes)| {
            Ok(encode_order_row(rows::decode_order(parse_number(number)?, row)?))
        };
        numbers.iter().zip(&orders).map(row).collect()
    }

    fn read_ended_orders(&mut self, members: &[MemberOrField]) -> TableResult<Vec<CopyRow>> {
        let fields: CommandArgs =
            members.iter().map(|member| member.get(8..).unwrap_or_default().to_vec()).collect();
        let found = self.fetch_rows(&Table::EndedOrders, &fields)?;
        found.iter().map(|row| Ok(encode_ended_order_row(rows::decode_ended_order(row)?))).collect()
    }

    fn read_idempotency_records(&mut self, members: &[MemberOrField]) -> TableResult<Vec<CopyRow>> {
        let fields: CommandArgs =
            members.iter().map(|member| member.get(8..).unwrap_or_default().to_vec()).collect();
        let mut rows = Vec::with_capacity(fields.len());
        for ((member, field), row) in
            members.iter().zip(&fields).zip(self.fetch_rows(&Table::IdempotencyRecords, &fields)?)
        {
            let field = decode_text(field)?;
            let (tenant, key) = field.split_once('/').ok_or_else(missing_row_fault)?;
            let mut row = RowDecoder::new(&row);
            let (digest, reply) = (row.bytes()?.to_vec(), row.text()?);
            rows.push(copy_row![tenant, key, digest, reply, decode_member_i64(member, 0)?]);
        }
        Ok(rows)
    }

    fn read_fires(&mut self, members: &[MemberOrField]) -> TableResult<Vec<CopyRow>> {
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
            rows.push(copy_row![schedule, fire.planned_at, fire.recorded_at, outcome, fire.event_id, task]);
        }
        Ok(rows)
    }
}

fn missing_row_fault() -> Fault {
    Fault::damaged("an index names a row that does not exist")
}

/// Returns the page of these rows after a cursor, which is the number of the last row before it.
fn page_of_rows(rows: Vec<CopyRow>, after: Option<&CopyCursor>) -> CopyPage {
    let before = after.and_then(|cursor| cursor.first()).and_then(CopyValue::as_number).unwrap_or(0);
    let mut page = CopyPage::default();
    for (number, row) in (1..).zip(rows).skip(usize::try_from(before).unwrap_or(usize::MAX)) {
        if page.is_full() {
            break;
        }
        page.push_row(vec![CopyValue::Number(number)], row);
    }
    page
}

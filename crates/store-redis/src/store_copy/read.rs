//! Reads rows: small tables at once, others along an index.

use std::ops::Bound;

use pointsman_store::columns::{
    Columns as _, FileDigestColumns, HandlerColumns, NamedTextColumns, NodeColumns, QueueColumns,
};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::{
    COPY_PROGRESS_TEXT_NAME, CopyCursor, CopyPage, CopyRow, CursorValue, TableKind,
};
use smallvec::{SmallVec, smallvec};

use super::RedisStoreCopy;
use super::attempts_and_logs::AttemptsOrLogs;
use super::tasks::TaskTable;
use crate::cells::{LeadingCell, RowReader, decode_row};
use crate::codec::{MemberOrField, decode_last_member_i64, decode_member_i64, encode_decimal_field};
use crate::connection::args;
use crate::keys::{Index, Table};
use crate::overlay::{Bytes, CacheFetch, ScanOrder};
use crate::read::ChunkSize;
use crate::rows::{self, decode_text};
use crate::{FIRST_TOKEN_HASH_TEXT_NAME, LAYOUT_TEXT_NAME, SALT_TEXT_NAME, TASK_ID_NAMESPACE_TEXT_NAME};

/// Names of the texts that are not copied with the others.
const EXCLUDED_TEXT_NAMES: [&str; 5] = [
    LAYOUT_TEXT_NAME,
    TASK_ID_NAMESPACE_TEXT_NAME,
    SALT_TEXT_NAME,
    FIRST_TOKEN_HASH_TEXT_NAME,
    COPY_PROGRESS_TEXT_NAME,
];

/// Where a row is stored that an index names: its table, its field, and its key.
type RowLocation<'m> = (Table, MemberOrField, SmallVec<[LeadingCell<'m>; 4]>);

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
            TableKind::FileDigests => self.sum_replies(&[length(Table::ConfiguredObjectDigests)])?,
            TableKind::Nodes => self.sum_replies(&[length(Table::Nodes)])?,
            TableKind::ScheduleProgress => self.sum_replies(&[length(Table::Schedules)])?,
            TableKind::Journal => self.count_events()?,
            TableKind::Objects => self.count_objects()?,
            TableKind::Tasks => self.count_tasks(TaskTable::Active)?,
            TableKind::Orders => self.sum_replies(&[length(Table::Orders)])?,
            TableKind::EndedOrders => self.sum_replies(&[length(Table::EndedOrders)])?,
            TableKind::ArchivedTasks => self.count_tasks(TaskTable::Archived)?,
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
            TableKind::Chains => self.read_small_table(table_kind, Table::Chains, after),
            TableKind::Rules => self.read_small_table(table_kind, Table::Rules, after),
            TableKind::FileDigests => Ok(page_of_rows(self.read_file_digests()?, after)),
            TableKind::Nodes => Ok(page_of_rows(self.read_nodes()?, after)),
            TableKind::ScheduleProgress => self.read_small_table(table_kind, Table::Schedules, after),
            TableKind::Journal => self.read_page_of_events(after),
            TableKind::Objects => self.read_page_of_objects(after),
            TableKind::Tasks => self.read_page_of_tasks(TaskTable::Active, after),
            TableKind::Orders => self.read_along_index(table_kind, &Index::OrdersByChain, after),
            TableKind::EndedOrders => self.read_along_index(table_kind, &Index::EndedOrdersByAge, after),
            TableKind::ArchivedTasks => self.read_page_of_tasks(TaskTable::Archived, after),
            TableKind::Attempts => self.read_page_of_attempts_or_log_lines(AttemptsOrLogs::Attempts, after),
            TableKind::Logs => self.read_page_of_attempts_or_log_lines(AttemptsOrLogs::Logs, after),
            TableKind::IdempotencyRecords => {
                self.read_along_index(table_kind, &Index::IdempotencyRecordsByAge, after)
            }
            TableKind::Fires => self.read_along_index(table_kind, &Index::FiresByAge, after),
            TableKind::AuditEntries => self.read_small_table(table_kind, Table::AuditEntries, after),
            TableKind::OutboxReceipts
            | TableKind::OutboxKeys
            | TableKind::OutboxRefusals
            | TableKind::UnknownTenantRules => Ok(CopyPage::default()),
        }
    }

    /// Reads a page of a small table, whose fields are the keys of its rows.
    fn read_small_table(
        &mut self,
        table_kind: TableKind,
        table: Table,
        after: Option<&CopyCursor>,
    ) -> TableResult<CopyPage> {
        let decode = |(field, row): &(MemberOrField, Bytes)| {
            let key = rows::decode_key_field(table_kind.key_columns(), field)?;
            CopyRow::read_cells(table_kind, &mut RowReader::new(&key, row))
        };
        let rows = self.read_sorted_table(table)?.iter().map(decode).collect::<TableResult<_>>()?;
        self.overlay().mark_committed();
        Ok(page_of_rows(rows, after))
    }

    /// Reads all rows of a small table, sorted by field.
    fn read_sorted_table(&mut self, table: Table) -> TableResult<Vec<(MemberOrField, Bytes)>> {
        let mut rows = self.overlay().read_table(table)?;
        rows.sort_unstable();
        Ok(rows)
    }

    fn read_named_texts(&mut self) -> TableResult<Vec<CopyRow>> {
        let mut rows = Vec::new();
        for (name, text) in self.read_sorted_table(Table::NamedTexts)? {
            let name = decode_text(&name)?;
            if !EXCLUDED_TEXT_NAMES.contains(&name.as_str()) {
                rows.push(NamedTextColumns { name: name.into(), text: decode_text(&text)?.into() }.into());
            }
        }
        Ok(rows)
    }

    fn read_handlers(&mut self) -> TableResult<Vec<CopyRow>> {
        let mut rows = Vec::new();
        for (id, row) in self.overlay().read_numbered_rows(Table::Handlers)? {
            let mut read_text = |table, default: &str| match self.overlay().read_row(table, id.to_string())? {
                Some(text) => decode_text(&text),
                None => Ok(default.to_string()),
            };
            let limiter_state = read_text(Table::LimiterStates, "")?.into();
            let gaps = read_text(Table::MissedEventRanges, "[]")?.into();
            let handler = rows::decode_handler(id, &row)?.into_owned();
            rows.push(HandlerColumns { limiter_state, gaps, ..handler }.into());
        }
        Ok(rows)
    }

    fn read_queues(&mut self) -> TableResult<Vec<CopyRow>> {
        let queues = self.overlay().read_queues()?;
        Ok(queues.iter().map(|queue| QueueColumns::from_row(queue).into_owned().into()).collect())
    }

    fn read_file_digests(&mut self) -> TableResult<Vec<CopyRow>> {
        let decode = |(key, digest): &(MemberOrField, Bytes)| {
            let (key, digest) = (decode_text(key)?.into(), decode_text(digest)?.into());
            Ok(FileDigestColumns { key, digest }.into())
        };
        self.read_sorted_table(Table::ConfiguredObjectDigests)?.iter().map(decode).collect()
    }

    /// Reads the rows of nodes. Those of live nodes get no last heartbeat: they are not live on the target.
    fn read_nodes(&mut self) -> TableResult<Vec<CopyRow>> {
        let mut rows = Vec::new();
        for (id, row) in self.overlay().read_numbered_rows(Table::Nodes)? {
            let node = decode_row::<NodeColumns<'_>>(&[LeadingCell::Number(id)], &row)?.into_owned();
            let last_heartbeat = if node.gone { node.last_heartbeat } else { 0 };
            rows.push(NodeColumns { last_heartbeat, ..node }.into());
        }
        Ok(rows)
    }

    /// Reads a page of rows in the order of an index. The cursor is the last index member.
    fn read_along_index(
        &mut self,
        table_kind: TableKind,
        index: &Index,
        after: Option<&CopyCursor>,
    ) -> TableResult<CopyPage> {
        let mut after = match after.and_then(|cursor| cursor.first()) {
            Some(CursorValue::Bytes(member)) => Some(member.clone()),
            Some(CursorValue::Number(_) | CursorValue::Text(_)) | None => None,
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
            let locations: Vec<RowLocation<'_>> =
                members.iter().map(|member| locate_row(table_kind, member)).collect::<TableResult<_>>()?;
            let fetch = |(table, field, _): &RowLocation<'_>| CacheFetch::Row(table.clone(), field.clone());
            self.overlay().fetch_into_cache(locations.iter().map(fetch).collect())?;
            let mut bytes = 0;
            for (member, (table, field, key)) in members.iter().zip(locations) {
                let row = self.overlay().read_row(table, field)?;
                let row = row.ok_or_else(|| Fault::damaged("an index names a row that does not exist"))?;
                bytes += row.len();
                page.push_row(
                    vec![CursorValue::Bytes(member.to_vec())],
                    CopyRow::read_cells(table_kind, &mut RowReader::new(&key, &row))?,
                );
            }
            // Drops the cached rows.
            self.overlay().mark_committed();
            chunk = chunk.next_after(bytes);
        }
        Ok(page)
    }
}

/// Returns where the row is stored that a member of the index of its table names.
fn locate_row(table_kind: TableKind, member: &[u8]) -> TableResult<RowLocation<'_>> {
    let field_after_time = member.get(8..).unwrap_or_default();
    let key_in_field = |table| {
        let key = rows::decode_key_field(table_kind.key_columns(), field_after_time)?;
        Ok((table, MemberOrField::from_slice(field_after_time), key))
    };
    match table_kind {
        TableKind::EndedOrders => key_in_field(Table::EndedOrders),
        TableKind::IdempotencyRecords => key_in_field(Table::IdempotencyRecords),
        TableKind::Fires => {
            let planned = decode_member_i64(member, 1)?;
            let schedule = str::from_utf8(member.get(16..).unwrap_or_default()).map_err(Fault::damaged)?;
            let key = smallvec![LeadingCell::Text(schedule), LeadingCell::Number(planned)];
            Ok((Table::Fires(schedule.into()), encode_decimal_field(planned), key))
        }
        TableKind::Orders => {
            let number = decode_last_member_i64(member)?;
            Ok((Table::Orders, encode_decimal_field(number), smallvec![LeadingCell::Number(number)]))
        }
        _ => Err(Fault::damaged(format!("no index of {table_kind}"))),
    }
}

/// Returns the page of these rows after a cursor, which is the number of the last row before it.
fn page_of_rows(rows: Vec<CopyRow>, after: Option<&CopyCursor>) -> CopyPage {
    let before = after.and_then(|cursor| cursor.first()).and_then(CursorValue::as_number).unwrap_or(0);
    let mut page = CopyPage::default();
    for (number, row) in (1..).zip(rows).skip(usize::try_from(before).unwrap_or(usize::MAX)) {
        if page.is_full() {
            break;
        }
        page.push_row(vec![CursorValue::Number(number)], row);
    }
    page
}

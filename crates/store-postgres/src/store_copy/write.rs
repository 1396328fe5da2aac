//! Writes pages of rows, each with the progress of the copy in one transaction.

use std::collections::HashMap;
use std::pin::pin;

use futures::SinkExt;
use pointsman_core::Tenant;
use pointsman_store::columns::{CounterColumns, UnknownTenantRuleColumns};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::{CopyRow, JOURNAL_SPARSE_INDEX_INTERVAL, TableKind};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::CopyConnection;
use super::copy_data::CopyData;
use super::table_layout::TableLayout;
use crate::documented_tables::{build_write_rule_query, canvas_id_of_tenant};
use crate::error::quote_identifier;
use crate::rows::read_column;
use crate::session::query;
use crate::tables::DEFAULT_ROWS_PER_PARTITION;

/// Rows are sent when they have this many bytes.
const MAX_COPY_MESSAGE_BYTES: usize = 64 << 10;
const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// The commit version, the last numbers of events and archived tasks, and the ends of their last partitions.
struct CopyCounters {
    commit_version: i64,
    expired_event_id: i64,
    last_event_number: i64,
    last_archive_number: i64,
    journal_partitions_end_number: i64,
    history_partitions_end_number: i64,
}

impl CopyConnection {
    /// Writes a page and the progress; returns false, and writes nothing, if somebody else has written to the store.
    pub(super) async fn write_page(
        &mut self,
        table_kind: TableKind,
        rows: Vec<CopyRow>,
        progress: &str,
    ) -> TableResult<bool> {
        self.end_read_transaction().await?;
        self.client.batch_execute(BEGIN_WRITE).await?;
        let mut counters = self.take_write_lock_and_read_counters().await?;
        // This comes before all other writes, because a change of a sequence is not rolled back.
        if counters.commit_version != self.commit_version || !self.write_progress(progress).await? {
            self.client.batch_execute("ROLLBACK").await?;
            return Ok(false);
        }
        match table_kind {
            TableKind::Counters => {
                for row in &rows {
                    self.write_counters(row).await?;
                }
                counters = self.take_write_lock_and_read_counters().await?;
            }
            TableKind::Rules | TableKind::UnknownTenantRules => {
                for row in rows {
                    self.write_rule(row).await?;
                }
            }
            TableKind::Queues => self.copy_queues(&rows).await?,
            TableKind::Journal => self.copy_events(&rows, &mut counters).await?,
            TableKind::ArchivedTasks => self.copy_archived_tasks(&rows, &mut counters).await?,
            TableKind::Attempts | TableKind::Logs => {
                self.copy_attempts_or_logs(table_kind, &rows, &mut counters).await?
            }
            TableKind::NamedTexts
            | TableKind::Handlers
            | TableKind::Chains
            | TableKind::FileDigests
            | TableKind::Nodes
            | TableKind::ScheduleProgress
            | TableKind::Objects
            | TableKind::Tasks
            | TableKind::Orders
            | TableKind::EndedOrders
            | TableKind::IdempotencyRecords
            | TableKind::Fires
            | TableKind::AuditEntries
            | TableKind::OutboxReceipts
            | TableKind::OutboxKeys
            | TableKind::OutboxRefusals => {
                self.copy_rows(table_kind, &rows, std::iter::empty::<[u8; 0]>()).await?
            }
        }
        let query = query!("store_copy/insert_commit_version", INT8, INT8, INT8, INT8);
        let CopyCounters {
            last_event_number,
            last_archive_number,
            journal_partitions_end_number: journal_partitions_end,
            history_partitions_end_number: history_partitions_end,
            ..
        } = counters;
        self.query(
            query,
            &[&last_event_number, &last_archive_number, &journal_partitions_end, &history_partitions_end],
        )
        .await?;
        self.client.batch_execute("COMMIT").await?;
        self.progress = Some(progress.into());
        self.commit_version += 1;
        Ok(true)
    }

    /// Takes the write lock and reads the counters.
    async fn take_write_lock_and_read_counters(&self) -> TableResult<CopyCounters> {
        self.query(query!("commit/acquire_write_lock"), &[]).await?;
        let rows = self.query(query!("store_copy/read_commit_counters"), &[]).await?;
        let row = rows.first().ok_or_else(|| Fault::damaged("pointsman.last_commit has no row"))?;
        Ok(CopyCounters {
            commit_version: read_column(row, 0)?,
            expired_event_id: read_column(row, 1)?,
            last_event_number: read_column(row, 2)?,
            last_archive_number: read_column(row, 3)?,
            journal_partitions_end_number: read_column(row, 4)?,
            history_partitions_end_number: read_column(row, 5)?,
        })
    }

    /// Replaces the stored progress; returns false if another copy has changed it.
    async fn write_progress(&self, progress: &str) -> TableResult<bool> {
        let written = match &self.progress {
            None => self.query(query!("store_copy/insert_copy_progress", TEXT), &[&progress]).await?,
            Some(before) => {
                self.query(query!("store_copy/update_copy_progress", TEXT, TEXT), &[&progress, before])
                    .await?
            }
        };
        Ok(!written.is_empty())
    }

    /// Sets the counters that depend on all rows, and deletes the progress; returns false, and changes nothing, if
    /// somebody else has written to the store.
    pub(super) async fn finish_copy(&mut self) -> TableResult<bool> {
        self.end_read_transaction().await?;
        self.client.batch_execute(BEGIN_WRITE).await?;
        if self.take_write_lock_and_read_counters().await?.commit_version != self.commit_version {
            self.client.batch_execute("ROLLBACK").await?;
            return Ok(false);
        }
        self.query(query!("store_copy/insert_final_commit_version"), &[]).await?;
        self.query(query!("store_copy/update_audit_and_outbox_sequences"), &[]).await?;
        self.query(query!("store_copy/delete_copy_progress", TEXT), &[&self.progress]).await?;
        self.client.batch_execute("COMMIT").await?;
        Ok(true)
    }

    /// Reads the number of rows per partition.
    async fn read_rows_per_partition(&self) -> TableResult<i64> {
        let rows = self.query(query!("meta/read_named_text", TEXT), &[&"partition_rows"]).await?;
        let text: Option<&str> = rows.first().map(|row| read_column(row, 0)).transpose()?;
        Ok(text
            .and_then(|text| text.parse().ok())
            .filter(|rows| *rows > 0)
            .unwrap_or(DEFAULT_ROWS_PER_PARTITION))
    }

    async fn write_counters(&self, row: &CopyRow) -> TableResult<()> {
        let &CopyRow::Counters(numbers) = row else { return Err(Fault::damaged("the counters")) };
        let CounterColumns { last_event, expired_up_to, expired_events, .. } = numbers;
        for (name, number) in [("task_id_namespace", numbers.task_id_namespace), ("salt", numbers.salt)] {
            self.query(query!("meta/write_named_text", TEXT, TEXT), &[&name, &number.to_string()]).await?;
        }
        self.delete_rows_of_empty_store().await?;
        let partition_rows = self.read_rows_per_partition().await?;
        let journal_end = (expired_events + 1) / partition_rows * partition_rows;
        let query = query!("store_copy/write_counters", INT8, INT8, INT8, INT8, INT8, INT8, INT8, INT8);
        self.query(
            query,
            &[
                &last_event,
                &expired_up_to,
                &expired_events,
                &numbers.last_task,
                &numbers.last_fence,
                &numbers.last_object,
                &numbers.archived_tasks,
                &journal_end,
            ],
        )
        .await?;
        if expired_events > 0 {
            self.insert_sparse_index_entries(vec![expired_events], vec![expired_up_to]).await?;
        }
        self.query(query!("store_copy/update_node_sequence", INT8), &[&numbers.last_node]).await?;
        Ok(())
    }

    /// Deletes what an empty store may contain: partitions, entries of the sparse index, and tenants.
    async fn delete_rows_of_empty_store(&self) -> TableResult<()> {
        self.query(query!("journal/delete_all_sparse_index_entries"), &[]).await?;
        self.query(query!("store_copy/delete_tenants"), &[]).await?;
        for row in &self.query(query!("partition/list_partitions"), &[]).await? {
            let drop_sql = format!("DROP TABLE pointsman.{}", quote_identifier(read_column(row, 1)?));
            self.client.batch_execute(&drop_sql).await?;
        }
        Ok(())
    }

    async fn insert_sparse_index_entries(&self, numbers: Vec<i64>, ids: Vec<i64>) -> TableResult<()> {
        self.query(query!("journal/insert_sparse_index_entries", INT8_ARRAY, INT8_ARRAY), &[&numbers, &ids])
            .await?;
        Ok(())
    }

    async fn write_rule(&self, row: CopyRow) -> TableResult<()> {
        match row {
            CopyRow::Rules(columns) => {
                let (query, params) = build_write_rule_query(&columns.into_rule()?);
                let params: Vec<_> =
                    params.iter().map(|param| param.as_ref() as &(dyn ToSql + Sync)).collect();
                self.query(query, &params).await?;
            }
            CopyRow::UnknownTenantRules(UnknownTenantRuleColumns { kind, space, name, canvas_id, since }) => {
                let canvas_id = Uuid::from_slice(&canvas_id).map_err(Fault::damaged)?;
                let query = query!("rule/insert_rule_of_unknown_tenant", TEXT, UUID, TEXT, TEXT, INT8);
                self.query(query, &[&kind, &canvas_id, &name, &space, &since]).await?;
            }
            _ => return Err(Fault::damaged("a rule")),
        }
        Ok(())
    }

    /// Writes queues, each with the uuid of its tenant, and the tenants.
    async fn copy_queues(&self, rows: &[CopyRow]) -> TableResult<()> {
        let (mut names, mut canvas_ids): (Vec<&str>, Vec<Uuid>) = (vec![], vec![]);
        for row in rows {
            let CopyRow::Queues(queue) = row else { return Err(Fault::damaged("a queue")) };
            names.push(&queue.tenant);
            let tenant = Tenant::new(&*queue.tenant).map_err(Fault::damaged)?;
            canvas_ids.push(canvas_id_of_tenant(Some(&tenant)));
        }
        self.query(query!("store_copy/insert_tenants", TEXT_ARRAY, UUID_ARRAY), &[&names, &canvas_ids])
            .await?;
        self.copy_rows(TableKind::Queues, rows, canvas_ids.iter().map(Uuid::as_bytes)).await
    }

    /// Writes events and numbers them in order. Expired events that tasks still need get negative numbers.
    async fn copy_events(&self, rows: &[CopyRow], counters: &mut CopyCounters) -> TableResult<()> {
        let (mut indexed_numbers, mut indexed_ids) = (vec![], vec![]);
        let mut numbers = Vec::with_capacity(rows.len());
        for row in rows {
            let CopyRow::Journal(event) = row else { return Err(Fault::damaged("an event")) };
            let mut number = -1;
            if event.id > counters.expired_event_id {
                counters.last_event_number += 1;
                number = counters.last_event_number;
                if number % JOURNAL_SPARSE_INDEX_INTERVAL == 0 {
                    indexed_numbers.push(number);
                    indexed_ids.push(event.id);
                }
            }
            numbers.push(number);
        }
        let partition_rows = self.read_rows_per_partition().await?;
        while counters.journal_partitions_end_number <= counters.last_event_number {
            self.add_partition("journal", counters.journal_partitions_end_number, partition_rows).await?;
            counters.journal_partitions_end_number += partition_rows;
        }
        self.insert_sparse_index_entries(indexed_numbers, indexed_ids).await?;
        self.copy_rows(TableKind::Journal, rows, numbers.into_iter().map(i64::to_be_bytes)).await
    }

    /// Writes archived tasks and numbers them in order.
    async fn copy_archived_tasks(&self, rows: &[CopyRow], counters: &mut CopyCounters) -> TableResult<()> {
        let numbers = counters.last_archive_number + 1..;
        counters.last_archive_number += rows.len() as i64;
        self.add_history_partitions(counters).await?;
        self.copy_rows(TableKind::ArchivedTasks, rows, numbers.map(i64::to_be_bytes)).await
    }

    /// Writes attempts or log lines into the partition of their task, with which they expire.
    async fn copy_attempts_or_logs(
        &self,
        table_kind: TableKind,
        rows: &[CopyRow],
        counters: &mut CopyCounters,
    ) -> TableResult<()> {
        self.add_history_partitions(counters).await?;
        let task = |row: &CopyRow| match row {
            CopyRow::Attempts(attempt) => attempt.task,
            CopyRow::Logs(line) => line.task,
            _ => 0,
        };
        let mut tasks: Vec<i64> = rows.iter().map(task).collect();
        tasks.dedup();
        let mut archive_numbers: HashMap<i64, i64> = HashMap::new();
        for row in &self.query(query!("history/list_archive_numbers_by_seq", INT8_ARRAY), &[&tasks]).await? {
            archive_numbers.insert(read_column(row, 0)?, read_column(row, 1)?);
        }
        let partition_keys = rows
            .iter()
            .map(|row| archive_numbers.get(&task(row)).copied().unwrap_or(counters.last_archive_number));
        self.copy_rows(table_kind, rows, partition_keys.map(i64::to_be_bytes)).await
    }

    /// Adds partitions up to the last archived task.
    async fn add_history_partitions(&self, counters: &mut CopyCounters) -> TableResult<()> {
        let partition_rows = self.read_rows_per_partition().await?;
        while counters.history_partitions_end_number <= counters.last_archive_number {
            for table in ["history", "attempt", "log"] {
                self.add_partition(table, counters.history_partitions_end_number, partition_rows).await?;
            }
            counters.history_partitions_end_number += partition_rows;
        }
        Ok(())
    }

    async fn add_partition(&self, table: &str, from: i64, partition_rows: i64) -> TableResult<()> {
        self.query(
            query!("partition/add_partition", TEXT, INT8, INT8),
            &[&table, &from, &(from + partition_rows)],
        )
        .await?;
        Ok(())
    }

    /// Writes rows, each with its cell in the column that only PostgreSQL has, if there is one.
    async fn copy_rows(
        &self,
        table_kind: TableKind,
        rows: &[CopyRow],
        postgres_cells: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> TableResult<()> {
        let layout = TableLayout::for_table(table_kind);
        let (table, columns) = (layout.table_name, layout.column_list(table_kind));
        let sql = format!("COPY pointsman.{table} ({columns}) FROM STDIN (FORMAT binary)");
        let mut sink = pin!(self.client.copy_in(&sql).await?);
        let mut data = CopyData::new();
        let mut postgres_cells = postgres_cells.into_iter();
        for row in rows {
            data.add_row(postgres_cells.next().as_ref().map(AsRef::as_ref), row);
            if data.len() >= MAX_COPY_MESSAGE_BYTES {
                sink.send(data.take()).await?;
            }
        }
        sink.send(data.finish()).await?;
        sink.finish().await?;
        Ok(())
    }
}

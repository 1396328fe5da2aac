//! Reads pages of rows, all in one snapshot.

use pointsman_core::Rule;
use pointsman_store::columns::{Columns, RuleColumns, UnknownTenantRuleColumns};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::{CopyCursor, CopyPage, CopyRow, CursorValue, TableKind};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::CopyConnection;
use super::table_layout::TableLayout;
use crate::documented_tables::{decode_rules, is_rule_of_unknown_tenant};
use crate::rows::{RowReader, read_column};
use crate::session::query;

const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Fetches the next rows of the cursor: only 250, because each may have a megabyte.
const FETCH_SQL: &str = "FETCH 250 FROM page";
const ROWS_PER_FETCH: usize = 250;

impl CopyConnection {
    /// Begins a snapshot for all following reads, until the next write.
    async fn begin_read_transaction(&mut self) -> TableResult<()> {
        if !self.is_in_read_transaction {
            self.client.batch_execute(BEGIN_SNAPSHOT).await?;
            self.is_in_read_transaction = true;
        }
        Ok(())
    }

    pub(super) async fn end_read_transaction(&mut self) -> TableResult<()> {
        if self.is_in_read_transaction {
            self.client.batch_execute("COMMIT").await?;
            (self.is_in_read_transaction, self.cursor) = (false, None);
        }
        Ok(())
    }

    pub(super) async fn count_rows(&mut self, table_kind: TableKind) -> TableResult<u64> {
        self.begin_read_transaction().await?;
        let TableLayout { table_name: table, row_filter, .. } = TableLayout::for_table(table_kind);
        match table_kind {
            TableKind::Rules => return Ok(self.list_rules().await?.len() as u64),
            TableKind::UnknownTenantRules => {
                return Ok(self.list_rules_of_unknown_tenants().await?.len() as u64);
            }
            _ => {}
        }
        let sql = format!("SELECT count(*) FROM pointsman.{table} t WHERE {row_filter}");
        let row = self.client.query_typed_one(&sql, &[]).await?;
        Ok(read_column::<i64>(&row, 0)?.unsigned_abs())
    }

    pub(super) async fn read_page(
        &mut self,
        table_kind: TableKind,
        after: Option<&CopyCursor>,
    ) -> TableResult<CopyPage> {
        self.begin_read_transaction().await?;
        match table_kind {
            TableKind::Counters => {
                let rows = self.query(query!("store_copy/read_counters"), &[]).await?;
                let row = rows.first().ok_or_else(|| Fault::damaged("pointsman.last_commit has no row"))?;
                let copy_row = CopyRow::read_cells(table_kind, &mut RowReader::new(row, 0))?;
                Ok(CopyPage::single_row(copy_row, after))
            }
            TableKind::Rules | TableKind::UnknownTenantRules if after.is_some() => Ok(CopyPage::default()),
            TableKind::Rules => {
                let rules = self.list_rules().await?;
                Ok(build_page_of_all_rows(
                    rules.iter().map(|rule| RuleColumns::from_rule(rule).into_owned().into()),
                ))
            }
            TableKind::UnknownTenantRules => {
                Ok(build_page_of_all_rows(self.list_rules_of_unknown_tenants().await?.into_iter()))
            }
            _ => self.read_table_page(table_kind, after).await,
        }
    }

    /// Reads the next page with the open cursor, or with a new one if that is at another position.
    async fn read_table_page(
        &mut self,
        table_kind: TableKind,
        after: Option<&CopyCursor>,
    ) -> TableResult<CopyPage> {
        let cursor = self.cursor.take();
        if cursor.is_none_or(|(table, position)| table != table_kind || Some(&position) != after) {
            self.open_cursor(table_kind, after).await?;
        }
        let key_length = TableLayout::for_table(table_kind).sort_columns.len();
        let mut page = CopyPage::default();
        while !page.is_full() {
            let rows = self.client.query_typed(FETCH_SQL, &[]).await?;
            for row in &rows {
                let position = (0..key_length).map(|index| read_cursor_value(row, index));
                let copy_row = CopyRow::read_cells(table_kind, &mut RowReader::new(row, key_length))?;
                page.push_row(position.collect::<TableResult<_>>()?, copy_row);
            }
            if rows.len() < ROWS_PER_FETCH {
                break;
            }
        }
        self.cursor = Some((table_kind, page.next_cursor.clone())).filter(|_| !page.rows.is_empty());
        Ok(page)
    }

    /// Opens a cursor for the rows of a table after a position, or for all.
    async fn open_cursor(&mut self, table_kind: TableKind, after: Option<&CopyCursor>) -> TableResult<()> {
        let TableLayout { table_name: table, sort_columns, row_filter, .. } =
            TableLayout::for_table(table_kind);
        let keys = sort_columns.iter().map(|name| format!("t.{name}")).collect::<Vec<_>>().join(", ");
        let params: Vec<_> = after.into_iter().flatten().map(cursor_param).collect();
        let placeholders: Vec<String> = (1..=params.len()).map(|n| format!("${n}")).collect();
        let after_position = match after {
            Some(_) => format!("({keys}) > ({})", placeholders.join(", ")),
            None => "true".into(),
        };
        let columns = TableLayout::select_list(table_kind);
        let sql = format!(
            "DECLARE page NO SCROLL CURSOR FOR SELECT {keys}, {columns} FROM pointsman.{table} t
             WHERE ({row_filter}) AND {after_position} ORDER BY {keys}"
        );
        self.client.batch_execute("CLOSE ALL").await?;
        self.client.execute_typed(&sql, &params).await?;
        Ok(())
    }

    async fn list_rules(&self) -> TableResult<Vec<Rule>> {
        decode_rules(&self.query(query!("rule/list_rules"), &[]).await?)
    }

    /// Lists the rules of tenants that the store does not know yet.
    async fn list_rules_of_unknown_tenants(&self) -> TableResult<Vec<CopyRow>> {
        let mut rows = Vec::new();
        for row in &self.query(query!("rule/list_rules"), &[]).await? {
            if is_rule_of_unknown_tenant(row)? {
                let canvas_id: Uuid = read_column(row, 7)?;
                let columns = UnknownTenantRuleColumns {
                    kind: read_column::<&str>(row, 0)?.into(),
                    space: read_column::<&str>(row, 1)?.into(),
                    name: read_column::<&str>(row, 2)?.into(),
                    canvas_id: canvas_id.as_bytes().as_slice().into(),
                    since: read_column(row, 6)?,
                };
                rows.push(columns.into_owned().into());
            }
        }
        Ok(rows)
    }
}

/// Reads a column of the key by which rows are ordered.
fn read_cursor_value(row: &Row, index: usize) -> TableResult<CursorValue> {
    match row.columns().get(index).map(|column| column.type_()) {
        Some(&Type::TEXT) => read_column(row, index).map(CursorValue::Text),
        Some(&Type::BYTEA) => read_column(row, index).map(CursorValue::Bytes),
        _ => read_column(row, index).map(CursorValue::Number),
    }
}

/// Returns a value of a cursor as a statement parameter, with its type.
fn cursor_param(value: &CursorValue) -> (&(dyn ToSql + Sync), Type) {
    match value {
        CursorValue::Number(number) => (number, Type::INT8),
        CursorValue::Text(text) => (text, Type::TEXT),
        CursorValue::Bytes(bytes) => (bytes, Type::BYTEA),
    }
}

/// Makes one page of all rows of a table.
fn build_page_of_all_rows(rows: impl Iterator<Item = CopyRow>) -> CopyPage {
    let mut page = CopyPage::default();
    rows.for_each(|row| page.push_row(vec![CursorValue::Number(1)], row));
    page
}

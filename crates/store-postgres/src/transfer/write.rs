//! Writing rows: a page and its note in one transaction.

use std::collections::HashMap;
use std::pin::pin;

use pointsman_core::{Place as RulePlace, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::transfer::{Cell, MARK_EVERY, Row, Section, clean};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Hand;
use super::lying::Lying;
use super::wire::Written;
use crate::documented::{canvas_of, space_of};
use crate::error::quoted;
use crate::rows::get;
use crate::session::query;
use crate::tables::SLICE;

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// How many commits there were, what the numbers of events and ended tasks go on behind, and up to where there are slices
/// for them.
struct Numbers {
    version: i64,
    forgotten: i64,
    journaled: i64,
    archived: i64,
    journal_to: i64,
    history_to: i64,
}

impl Hand {
    pub(super) async fn write(&mut self, section: Section, rows: Vec<Row>, note: &str) -> Result<bool> {
        self.end_reading().await?;
        self.client.batch_execute(BEGIN).await?;
        let mut numbers = self.lock().await?;
        // Before anything else: what sequences are set to stays, whatever becomes of the transaction.
        if numbers.version != self.version || !self.put_note(note).await? {
            self.client.batch_execute("ROLLBACK").await?;
            return Ok(false);
        }
        if section == Section::Counters {
            for row in &rows {
                self.put_counters(row).await?;
            }
            numbers = self.lock().await?;
        }
        match section {
            Section::Counters => {}
            Section::Rules => {
                for row in &rows {
                    self.put_rule(row).await?;
                }
            }
            Section::Ahead => {
                for row in &rows {
                    self.put_rule_ahead(row).await?;
                }
            }
            Section::Queues => self.copy_queues(rows).await?,
            Section::Journal => self.copy_events(rows, &mut numbers).await?,
            Section::History => self.copy_ended(rows, &mut numbers).await?,
            Section::Attempts | Section::Logs => self.copy_of_tasks(section, rows, &mut numbers).await?,
            Section::Texts
            | Section::Handlers
            | Section::Chains
            | Section::Files
            | Section::Nodes
            | Section::Schedules
            | Section::Objects
            | Section::Tasks
            | Section::Orders
            | Section::EndedOrders
            | Section::Answers
            | Section::Fires
            | Section::Deeds
            | Section::Receipts
            | Section::Keys
            | Section::Refused => self.copy(section, rows).await?,
        }
        let advance = query!("transfer/advance", INT8, INT8, INT8, INT8);
        let Numbers { journaled, archived, journal_to, history_to, .. } = numbers;
        self.ask(advance, &[&journaled, &archived, &journal_to, &history_to]).await?;
        self.client.batch_execute("COMMIT").await?;
        self.note = Some(note.into());
        self.version += 1;
        Ok(true)
    }

    async fn lock(&self) -> Result<Numbers> {
        self.ask(query!("write/take_turn"), &[]).await?;
        let rows = self.ask(query!("transfer/numbers"), &[]).await?;
        let row = rows.first().ok_or_else(|| Fault::damaged("the sequencer has no row"))?;
        Ok(Numbers {
            version: get(row, 0)?,
            forgotten: get(row, 1)?,
            journaled: get(row, 2)?,
            archived: get(row, 3)?,
            journal_to: get(row, 4)?,
            history_to: get(row, 5)?,
        })
    }

    /// False if somebody else is moving to here as well.
    async fn put_note(&self, note: &str) -> Result<bool> {
        let put = match &self.note {
            None => self.ask(query!("transfer/first_note", TEXT), &[&note]).await?,
            Some(before) => self.ask(query!("transfer/next_note", TEXT, TEXT), &[&note, before]).await?,
        };
        Ok(!put.is_empty())
    }

    pub(super) async fn finish(&mut self) -> Result<bool> {
        self.end_reading().await?;
        self.client.batch_execute(BEGIN).await?;
        if self.lock().await?.version != self.version {
            self.client.batch_execute("ROLLBACK").await?;
            return Ok(false);
        }
        self.ask(query!("transfer/finish"), &[]).await?;
        self.ask(query!("transfer/number_deeds"), &[]).await?;
        self.ask(query!("transfer/forget_note", TEXT), &[&self.note]).await?;
        self.client.batch_execute("COMMIT").await?;
        Ok(true)
    }

    /// How many rows a slice has.
    async fn slice(&self) -> Result<i64> {
        let rows = self.ask(query!("write/text", TEXT), &[&"slice"]).await?;
        let text: Option<&str> = rows.first().map(|row| get(row, 0)).transpose()?;
        Ok(text.and_then(|text| text.parse().ok()).filter(|rows| *rows > 0).unwrap_or(SLICE))
    }

    async fn put_counters(&self, row: &Row) -> Result<()> {
        let numbers: Option<Vec<i64>> = row.iter().map(Cell::number).collect();
        let numbers: Option<[i64; 11]> = numbers.and_then(|numbers| numbers.try_into().ok());
        let Some([realm, salt, last, forgotten, unseen, _, tasks, fences, objects, ended, nodes]) = numbers
        else {
            return Err(Fault::damaged("the counters"));
        };
        for (name, number) in [("realm", realm), ("salt", salt)] {
            self.ask(query!("write/put_text", TEXT, TEXT), &[&name, &number.to_string()]).await?;
        }
        self.clear().await?;
        let slice = self.slice().await?;
        let journal_to = (unseen + 1) / slice * slice;
        let put = query!("transfer/put_counters", INT8, INT8, INT8, INT8, INT8, INT8, INT8, INT8);
        self.ask(put, &[&last, &forgotten, &unseen, &tasks, &fences, &objects, &ended, &journal_to]).await?;
        if unseen > 0 {
            self.put_marks(vec![unseen], vec![forgotten]).await?;
        }
        self.ask(query!("transfer/number_nodes", INT8), &[&nodes]).await?;
        Ok(())
    }

    /// Where nothing is remembered, slices may lie all the same, marks of events that are forgotten, and tenants.
    async fn clear(&self) -> Result<()> {
        self.ask(query!("transfer/clear_marks"), &[]).await?;
        self.ask(query!("transfer/clear_tenants"), &[]).await?;
        for row in &self.ask(query!("sweep/slices"), &[]).await? {
            let drop = format!("DROP TABLE pointsman.{}", quoted(get(row, 1)?));
            self.client.batch_execute(&drop).await?;
        }
        Ok(())
    }

    async fn put_marks(&self, numbers: Vec<i64>, ids: Vec<i64>) -> Result<()> {
        self.ask(query!("write/insert_marks", INT8_ARRAY, INT8_ARRAY), &[&numbers, &ids]).await?;
        Ok(())
    }

    async fn put_rule(&self, row: &Row) -> Result<()> {
        let texts: Vec<&str> = row.iter().filter_map(Cell::text).collect();
        let (&[kind, space, name, tenant, by, reason], Some(since)) =
            (texts.as_slice(), row.last().and_then(Cell::number))
        else {
            return Err(Fault::damaged("a rule"));
        };
        let place = RulePlace::read(space, name).ok_or_else(|| Fault::damaged("the place of a rule"))?;
        let tenant = Some(tenant).filter(|name| !name.is_empty());
        let tenant = tenant.map(Tenant::new).transpose().map_err(Fault::damaged)?;
        let put = query!("write/put_rule", TEXT, UUID, TEXT, TEXT, TEXT, INT8, TEXT, TEXT);
        self.ask(
            put,
            &[
                &kind,
                &canvas_of(tenant.as_ref()),
                &tenant.as_ref().map(Tenant::as_str),
                &name,
                &space_of(&place),
                &since,
                &clean(by),
                &clean(reason),
            ],
        )
        .await?;
        Ok(())
    }

    async fn put_rule_ahead(&self, row: &Row) -> Result<()> {
        let [Cell::Text(kind), Cell::Text(space), Cell::Text(name), Cell::Bytes(canvas), Cell::Number(since)] =
            row.as_slice()
        else {
            return Err(Fault::damaged("a rule"));
        };
        let canvas = Uuid::from_slice(canvas).map_err(Fault::damaged)?;
        let put = query!("transfer/put_rule_ahead", TEXT, UUID, TEXT, TEXT, INT8);
        self.ask(put, &[kind, &canvas, name, space, since]).await?;
        Ok(())
    }

    /// Each queue has the uuid of its tenant beside it.
    async fn copy_queues(&mut self, rows: Vec<Row>) -> Result<()> {
        let (mut names, mut canvases): (Vec<String>, Vec<Uuid>) = (vec![], vec![]);
        let mut wider = Vec::with_capacity(rows.len());
        for row in rows {
            let name = row.get(2).and_then(Cell::text).unwrap_or_default();
            let tenant = Tenant::new(name).map_err(Fault::damaged)?;
            let canvas = canvas_of(Some(&tenant));
            names.push(name.into());
            canvases.push(canvas);
            wider.push(with(Cell::Bytes(canvas.as_bytes().to_vec()), row));
        }
        self.ask(query!("transfer/know_tenants", TEXT_ARRAY, UUID_ARRAY), &[&names, &canvases]).await?;
        self.copy(Section::Queues, wider).await
    }

    /// Events are numbered as they come. Those that are forgotten and still needed lie apart, below zero.
    async fn copy_events(&mut self, rows: Vec<Row>, numbers: &mut Numbers) -> Result<()> {
        let (mut marked, mut ids) = (vec![], vec![]);
        let mut numbered = Vec::with_capacity(rows.len());
        for row in rows {
            let id = row.first().and_then(Cell::number).unwrap_or_default();
            let mut number = -1;
            if id > numbers.forgotten {
                numbers.journaled += 1;
                number = numbers.journaled;
                if number % MARK_EVERY == 0 {
                    marked.push(number);
                    ids.push(id);
                }
            }
            numbered.push(with(Cell::Number(number), row));
        }
        let slice = self.slice().await?;
        while numbers.journal_to <= numbers.journaled {
            self.add_slice("journal", numbers.journal_to, slice).await?;
            numbers.journal_to += slice;
        }
        self.put_marks(marked, ids).await?;
        self.copy(Section::Journal, numbered).await
    }

    /// Ended tasks are counted as they come.
    async fn copy_ended(&mut self, rows: Vec<Row>, numbers: &mut Numbers) -> Result<()> {
        let counted = (numbers.archived + 1..).map(Cell::Number).zip(rows);
        let counted: Vec<Row> = counted.map(|(n, row)| with(n, row)).collect();
        numbers.archived += counted.len() as i64;
        self.make_room(numbers).await?;
        self.copy(Section::History, counted).await
    }

    /// Attempts and logs lie in the slice of their task, and go with it.
    async fn copy_of_tasks(&mut self, section: Section, rows: Vec<Row>, numbers: &mut Numbers) -> Result<()> {
        self.make_room(numbers).await?;
        let task = |row: &Row| row.first().and_then(Cell::number).unwrap_or_default();
        let mut tasks: Vec<i64> = rows.iter().map(task).collect();
        tasks.dedup();
        let mut eras: HashMap<i64, i64> = HashMap::new();
        for row in &self.ask(query!("transfer/eras", INT8_ARRAY), &[&tasks]).await? {
            eras.insert(get(row, 0)?, get(row, 1)?);
        }
        let era = |row: &Row| eras.get(&task(row)).copied().unwrap_or(numbers.archived);
        let rows = rows.into_iter().map(|row| with(Cell::Number(era(&row)), row));
        self.copy(section, rows.collect()).await
    }

    /// Sees to it that there are slices for all ended tasks.
    async fn make_room(&self, numbers: &mut Numbers) -> Result<()> {
        let slice = self.slice().await?;
        while numbers.history_to <= numbers.archived {
            for table in ["history", "attempt", "log"] {
                self.add_slice(table, numbers.history_to, slice).await?;
            }
            numbers.history_to += slice;
        }
        Ok(())
    }

    async fn add_slice(&self, table: &str, from: i64, slice: i64) -> Result<()> {
        self.ask(query!("write/add_slice", TEXT, INT8, INT8), &[&table, &from, &(from + slice)]).await?;
        Ok(())
    }

    /// Rows with all the columns that the table has.
    async fn copy(&mut self, section: Section, rows: Vec<Row>) -> Result<()> {
        let lying = Lying::of(section);
        let (table, columns) = (lying.table, lying.columns(section));
        let types = self.types_of(section, table, &columns).await?;
        let sql = format!("COPY pointsman.{table} ({columns}) FROM STDIN (FORMAT binary)");
        let sink = self.client.copy_in(&sql).await?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        for row in &rows {
            if row.len() != types.len() {
                return Err(Fault::damaged(format!("a row of {section} that has other columns")));
            }
            writer.as_mut().write_raw(row.iter().map(Written)).await?;
        }
        writer.finish().await?;
        Ok(())
    }

    async fn types_of(&mut self, section: Section, table: &str, columns: &str) -> Result<Vec<Type>> {
        if let Some(types) = self.types.get(&section) {
            return Ok(types.clone());
        }
        let row = self.client.prepare(&format!("SELECT {columns} FROM pointsman.{table}")).await?;
        let types: Vec<Type> = row.columns().iter().map(|column| column.type_().clone()).collect();
        self.types.insert(section, types.clone());
        Ok(types)
    }
}

/// The row with another cell before it.
fn with(cell: Cell, row: Row) -> Row {
    std::iter::once(cell).chain(row).collect()
}

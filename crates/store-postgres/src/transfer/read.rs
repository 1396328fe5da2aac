//! Reading rows, all of one moment.

use pointsman_core::{Rule, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::transfer::{Cell, Page, Place, Row, Section};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::Hand;
use super::lying::Lying;
use super::wire::{Found, Written, asked_as};
use crate::documented::{is_ahead, rules_of};
use crate::rows::get;
use crate::session::query;

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// So many rows come at a time: a row may hold a megabyte.
const FETCH: &str = "FETCH 250 FROM page";
const FETCHED: usize = 250;

impl Hand {
    /// From now on everything that is read is of one moment, until somebody writes.
    async fn begin_reading(&mut self) -> Result<()> {
        if !self.reading {
            self.client.batch_execute(BEGIN).await?;
            self.reading = true;
        }
        Ok(())
    }

    pub(super) async fn end_reading(&mut self) -> Result<()> {
        if self.reading {
            self.client.batch_execute("COMMIT").await?;
            (self.reading, self.cursor) = (false, None);
        }
        Ok(())
    }

    pub(super) async fn count(&mut self, section: Section) -> Result<u64> {
        self.begin_reading().await?;
        let Lying { table, which, .. } = Lying::of(section);
        match section {
            Section::Rules => return Ok(self.rules().await?.len() as u64),
            Section::Ahead => return Ok(self.rules_ahead().await?.len() as u64),
            _ => {}
        }
        let sql = format!("SELECT count(*) FROM pointsman.{table} t WHERE {which}");
        let row = self.client.query_typed_one(&sql, &[]).await?;
        Ok(get::<i64>(&row, 0)?.unsigned_abs())
    }

    pub(super) async fn read(&mut self, section: Section, after: Option<&Place>) -> Result<Page> {
        self.begin_reading().await?;
        match section {
            Section::Counters => {
                let rows = self.ask(query!("transfer/counters"), &[]).await?;
                let row = rows.first().ok_or_else(|| Fault::damaged("the sequencer has no row"))?;
                Ok(Page::single(cells(row)?, after))
            }
            Section::Rules | Section::Ahead if after.is_some() => Ok(Page::default()),
            Section::Rules => Ok(whole(self.rules().await?.iter().map(row_of))),
            Section::Ahead => Ok(whole(self.rules_ahead().await?.into_iter())),
            _ => self.read_table(section, after).await,
        }
    }

    async fn read_table(&mut self, section: Section, after: Option<&Place>) -> Result<Page> {
        let stands = self.cursor.take();
        if stands.is_none_or(|(at, place)| at != section || Some(&place) != after) {
            self.declare(section, after).await?;
        }
        let width = Lying::of(section).key.len();
        let mut page = Page::default();
        while !page.is_full() {
            let rows = self.client.query_typed(FETCH, &[]).await?;
            for row in &rows {
                let mut place = cells(row)?;
                let row = place.split_off(width);
                page.push(place, row);
            }
            if rows.len() < FETCHED {
                break;
            }
        }
        self.cursor = Some((section, page.place.clone())).filter(|_| !page.rows.is_empty());
        Ok(page)
    }

    /// Lets a cursor stand before the first row behind a place.
    async fn declare(&mut self, section: Section, after: Option<&Place>) -> Result<()> {
        let Lying { table, key, which, .. } = Lying::of(section);
        let keys = key.iter().map(|name| format!("t.{name}")).collect::<Vec<_>>().join(", ");
        let cells: Vec<Written<'_>> = after.into_iter().flatten().map(Written).collect();
        let places: Vec<String> = (1..=cells.len()).map(|at| format!("${at}")).collect();
        let behind = match after {
            Some(_) => format!("({keys}) > ({})", places.join(", ")),
            None => "true".into(),
        };
        let columns = Lying::expressions(section);
        let sql = format!(
            "DECLARE page NO SCROLL CURSOR FOR SELECT {keys}, {columns} FROM pointsman.{table} t
             WHERE ({which}) AND {behind} ORDER BY {keys}"
        );
        let params: Vec<(&(dyn ToSql + Sync), Type)> =
            cells.iter().map(|cell| (cell as &(dyn ToSql + Sync), asked_as(cell.0))).collect();
        self.client.batch_execute("CLOSE ALL").await?;
        self.client.execute_typed(&sql, &params).await?;
        Ok(())
    }

    async fn rules(&self) -> Result<Vec<Rule>> {
        rules_of(&self.ask(query!("write/rules"), &[]).await?)
    }

    /// The rules for tenants that nobody has heard of yet.
    async fn rules_ahead(&self) -> Result<Vec<Row>> {
        let mut ahead = Vec::new();
        for row in &self.ask(query!("write/rules"), &[]).await? {
            if is_ahead(row)? {
                let canvas: Uuid = get(row, 7)?;
                let [kind, space, name] = [get(row, 0)?, get(row, 1)?, get(row, 2)?].map(Cell::Text);
                let canvas = Cell::Bytes(canvas.as_bytes().to_vec());
                ahead.push(vec![kind, space, name, canvas, Cell::Number(get(row, 6)?)]);
            }
        }
        Ok(ahead)
    }
}

fn cells(row: &tokio_postgres::Row) -> Result<Row> {
    (0..row.len()).map(|at| get::<Found>(row, at).map(|found| found.0)).collect()
}

/// All rows of a section in one page.
fn whole(rows: impl Iterator<Item = Row>) -> Page {
    let mut page = Page::default();
    rows.for_each(|row| page.push(vec![Cell::Number(1)], row));
    page
}

fn row_of(rule: &Rule) -> Row {
    let tenant = rule.tenant.as_ref().map_or("", Tenant::as_str);
    let name = rule.place.name();
    let texts = [rule.kind.as_str(), rule.place.space(), &name, tenant, &rule.by, &rule.reason];
    let since = Cell::Number(rule.since.micros());
    texts.into_iter().map(|text| Cell::Text(text.into())).chain([since]).collect()
}

//! Carrying a move out.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use pointsman_core::store::{Result, StoreError};
use serde::{Deserialize, Serialize};

use super::{CopyCursor, CopyEndpoint, CopyError, CopyPage, CopyValue, TableChecksum, TableKind};

/// So many pages are read ahead of the one that is being written.
const PAGES_READ_AHEAD: usize = 2;

/// How a move goes on, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyProgress {
    /// So many rows are to be copied, of which an earlier move has copied some.
    Copying {
        total_rows: u64,
        already_copied: u64,
    },
    Copied {
        table: TableKind,
        rows: u64,
    },
    /// So many rows are to be read on both sides.
    Comparing {
        total_rows: u64,
    },
    TableComparison {
        table: TableKind,
        rows: u64,
    },
}

/// A section of both stores; none where a store of that kind has no such section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableComparison {
    pub table: TableKind,
    pub source: Option<TableChecksum>,
    pub target: Option<TableChecksum>,
}

/// What two stores hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    pub tables: Vec<TableComparison>,
}

impl CopyReport {
    /// The sections in which the two differ.
    pub fn differing_tables(&self) -> Vec<TableKind> {
        let differs = |both: &&TableComparison| {
            both.source.zip(both.target).is_some_and(|(source_sums, target_sums)| source_sums != target_sums)
        };
        self.tables.iter().filter(differs).map(|both| both.table).collect()
    }

    /// What the target has no place for.
    pub fn uncopied_rows(&self) -> Vec<(TableKind, u64)> {
        let left = self.tables.iter().filter(|both| both.target.is_none());
        let rows = left.filter_map(|both| both.source.map(|checksum| (both.table, checksum.rows)));
        rows.filter(|(_, rows)| *rows > 0).collect()
    }

    /// How many rows both have.
    pub fn copied_rows(&self) -> u64 {
        self.tables
            .iter()
            .filter(|both| both.target.is_some())
            .filter_map(|both| both.source)
            .map(|t| t.rows)
            .sum()
    }
}

/// How far a move has come, as the target keeps it.
#[derive(Debug, Serialize, Deserialize)]
struct StoredProgress {
    /// The realm of the source, and the checksum of its counters: what they tell changes with every node that joins.
    #[serde(rename = "realm")]
    task_id_namespace: i64,
    #[serde(rename = "stamp")]
    counters_checksum: String,
    #[serde(rename = "section")]
    table: TableKind,
    #[serde(rename = "place")]
    cursor: Option<CopyCursor>,
    /// How many rows were copied.
    #[serde(rename = "rows")]
    rows_copied: u64,
}

/// Moves everything, or goes on with a move that was cut off, and compares both sides. The target is whole if the report
/// tells of no difference.
pub fn copy_store(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
    on_progress: &mut dyn FnMut(CopyProgress),
) -> std::result::Result<CopyReport, CopyError> {
    let mut progress = load_progress(source, target)?;
    let all = count_rows_to_copy(source, target)?;
    on_progress(CopyProgress::Copying { total_rows: all, already_copied: progress.rows_copied });
    copy_missing_rows(source, target, &mut progress, on_progress)?;
    let report = compare_stores(source, target, on_progress)?;
    if !source.is_unchanged().map_err(CopyError::ReadSource)? {
        return Err(CopyError::SourceWritten);
    }
    if report.differing_tables().is_empty() && !target.finish_copy().map_err(CopyError::WriteTarget)? {
        return Err(CopyError::TargetWritten);
    }
    Ok(report)
}

/// Compares two stores that are both whole.
pub fn verify_copy(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
    on_progress: &mut dyn FnMut(CopyProgress),
) -> std::result::Result<CopyReport, CopyError> {
    if source.read_progress().map_err(CopyError::ReadSource)?.is_some() {
        return Err(CopyError::SourceIncomplete);
    }
    if target.read_progress().map_err(CopyError::WriteTarget)?.is_some() {
        return Err(CopyError::TargetIncomplete);
    }
    compare_stores(source, target, on_progress)
}

/// How far it has come. A target without a note must be empty.
fn load_progress(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
) -> std::result::Result<StoredProgress, CopyError> {
    if source.read_progress().map_err(CopyError::ReadSource)?.is_some() {
        return Err(CopyError::SourceIncomplete);
    }
    let (task_id_namespace, stamp) = read_counters(source).map_err(CopyError::ReadSource)?;
    if let Some(text) = target.read_progress().map_err(CopyError::WriteTarget)? {
        let progress: StoredProgress =
            serde_json::from_str(&text).map_err(|_| CopyError::OtherCopyUnfinished)?;
        return match (progress.task_id_namespace == task_id_namespace, progress.counters_checksum == stamp) {
            (true, true) => Ok(progress),
            (true, false) => Err(CopyError::SourceChanged),
            (false, _) => Err(CopyError::OtherCopyUnfinished),
        };
    }
    let holds = describe_contents(target).map_err(CopyError::WriteTarget)?;
    if holds.is_empty() {
        return Ok(StoredProgress {
            task_id_namespace,
            counters_checksum: stamp,
            table: TableKind::Counters,
            cursor: None,
            rows_copied: 0,
        });
    }
    match read_counters(target).map_err(CopyError::WriteTarget)?.0 == task_id_namespace {
        true => Err(CopyError::AlreadyCopied),
        false => Err(CopyError::TargetNotEmpty(holds.join(", "))),
    }
}

/// The realm, and the checksum of all counters.
fn read_counters(store: &mut dyn CopyEndpoint) -> Result<(i64, String)> {
    let mut checksum = TableChecksum::default();
    let page = store.read_page(TableKind::Counters, None)?;
    page.rows.iter().for_each(|row| checksum.add_row(row));
    let task_id_namespace = page.rows.first().and_then(|row| row.first()).and_then(CopyValue::as_number);
    Ok((task_id_namespace.unwrap_or_default(), checksum.format_checksum()))
}

/// What there is in a store, in words. Its counters are there always.
fn describe_contents(store: &mut dyn CopyEndpoint) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for table in TableKind::ALL.into_iter().filter(|table| *table != TableKind::Counters) {
        if let Some(rows @ 1..) = store.count_rows(table)? {
            found.push(format!("{table} ({rows})"));
        }
    }
    if let waiting @ 1.. = store.count_outbox_events()? {
        found.push(format!("outbox ({waiting})"));
    }
    Ok(found)
}

/// How many rows there are to copy.
fn count_rows_to_copy(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
) -> std::result::Result<u64, CopyError> {
    let mut all = 0;
    for table in list_common_tables(target)? {
        all += source.count_rows(table).map_err(CopyError::ReadSource)?.unwrap_or(0);
    }
    Ok(all)
}

/// The sections that the target has a place for.
fn list_common_tables(target: &mut dyn CopyEndpoint) -> std::result::Result<Vec<TableKind>, CopyError> {
    let mut tables = Vec::new();
    for table in TableKind::ALL {
        if target.count_rows(table).map_err(CopyError::WriteTarget)?.is_some() {
            tables.push(table);
        }
    }
    Ok(tables)
}

/// Copies what is missing. One thread reads ahead while this one writes.
fn copy_missing_rows(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
    progress: &mut StoredProgress,
    on_progress: &mut dyn FnMut(CopyProgress),
) -> std::result::Result<(), CopyError> {
    let (first, cursor) = (progress.table, progress.cursor.clone());
    let tables = list_common_tables(target)?.into_iter().filter(|table| *table >= first).collect();
    thread::scope(|scope| {
        let (pages, read) = sync_channel(PAGES_READ_AHEAD);
        let reading = scope.spawn(move || read_pages(source, tables, cursor, &pages));
        // Whoever cannot write lets go of what was read, and the reader stops.
        let written = write_pages(target, read, progress, on_progress);
        let read = join_thread(reading).map_err(CopyError::ReadSource);
        written.and(read)
    })
}

/// Reads the first section from a place on, and the others from their beginnings.
fn read_pages(
    source: &mut dyn CopyEndpoint,
    tables: Vec<TableKind>,
    mut cursor: Option<CopyCursor>,
    pages: &SyncSender<(TableKind, CopyPage)>,
) -> Result<()> {
    for table in tables {
        let mut after = cursor.take();
        loop {
            let page = source.read_page(table, after.as_ref())?;
            if page.rows.is_empty() {
                break;
            }
            after = Some(page.next_cursor.clone());
            if pages.send((table, page)).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn write_pages(
    target: &mut dyn CopyEndpoint,
    read: Receiver<(TableKind, CopyPage)>,
    progress: &mut StoredProgress,
    on_progress: &mut dyn FnMut(CopyProgress),
) -> std::result::Result<(), CopyError> {
    for (table, page) in read {
        let rows = page.rows.len() as u64;
        (progress.table, progress.cursor) = (table, Some(page.next_cursor));
        progress.rows_copied += rows;
        let text = serde_json::to_string(progress)
            .map_err(|e| CopyError::WriteTarget(StoreError::Damaged(e.to_string())))?;
        if !target.write_rows(table, page.rows, &text).map_err(CopyError::WriteTarget)? {
            return Err(CopyError::TargetWritten);
        }
        on_progress(CopyProgress::Copied { table, rows });
    }
    Ok(())
}

/// Reads both stores whole, side by side.
pub fn compare_stores(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
    on_progress: &mut dyn FnMut(CopyProgress),
) -> std::result::Result<CopyReport, CopyError> {
    let all = 2 * count_rows_to_copy(source, target)?;
    on_progress(CopyProgress::Comparing { total_rows: all });
    thread::scope(|scope| {
        let (steps, received) = channel();
        let target_steps = steps.clone();
        let source_sums = scope.spawn(move || checksum_tables(source, &steps));
        let target_sums = scope.spawn(move || checksum_tables(target, &target_steps));
        received.into_iter().for_each(on_progress);
        let source_sums = join_thread(source_sums).map_err(CopyError::ReadSource)?;
        let target_sums = join_thread(target_sums).map_err(CopyError::WriteTarget)?;
        let both = TableKind::ALL.into_iter().zip(source_sums.into_iter().zip(target_sums));
        let tables = both.map(|(table, (source, target))| TableComparison { table, source, target });
        Ok(CopyReport { tables: tables.filter(|both| both.source.or(both.target).is_some()).collect() })
    })
}

/// A tally for each section.
fn checksum_tables(
    store: &mut dyn CopyEndpoint,
    steps: &Sender<CopyProgress>,
) -> Result<Vec<Option<TableChecksum>>> {
    let checksum = |table| match store.count_rows(table)? {
        Some(_) => checksum_table(store, table, steps).map(Some),
        None => Ok(None),
    };
    TableKind::ALL.into_iter().map(checksum).collect()
}

fn checksum_table(
    store: &mut dyn CopyEndpoint,
    table: TableKind,
    steps: &Sender<CopyProgress>,
) -> Result<TableChecksum> {
    let (mut checksum, mut after) = (TableChecksum::default(), None);
    loop {
        let page = store.read_page(table, after.as_ref())?;
        if page.rows.is_empty() {
            return Ok(checksum);
        }
        page.rows.iter().for_each(|row| checksum.add_row(row));
        // Nobody may be watching any more.
        let _ = steps.send(CopyProgress::TableComparison { table, rows: page.rows.len() as u64 });
        after = Some(page.next_cursor);
    }
}

/// What a thread answered. If it panicked, so does this one.
fn join_thread<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

//! Copies a store into another and compares them.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use pointsman_core::store::{StoreError, StoreResult};
use serde::{Deserialize, Serialize};

use super::{CopyCursor, CopyEndpoint, CopyError, CopyPage, CopyRow, TableChecksum, TableKind};

/// Pages that are read ahead of the one being written.
const PAGES_READ_AHEAD: usize = 2;

/// Progress of a copy, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyProgressUpdate {
    /// Copying starts: `total_rows` in all, of which an earlier, interrupted copy has copied some.
    CopyStarted {
        total_rows: u64,
        already_copied: u64,
    },
    PageCopied {
        table: TableKind,
        rows: u64,
    },
    /// Comparing starts: `total_rows` are to be read, in both stores together.
    ComparisonStarted {
        total_rows: u64,
    },
    PageCompared {
        table: TableKind,
        rows: u64,
    },
}

/// The checksums of a table in both stores; `None` where a store of that kind has no such table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableComparison {
    pub table: TableKind,
    pub source_checksum: Option<TableChecksum>,
    pub target_checksum: Option<TableChecksum>,
}

/// Result of comparing two stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparisonReport {
    pub tables: Vec<TableComparison>,
}

impl ComparisonReport {
    /// Returns the tables that differ.
    pub fn differing_tables(&self) -> Vec<TableKind> {
        let differs = |comparison: &&TableComparison| {
            comparison
                .source_checksum
                .zip(comparison.target_checksum)
                .is_some_and(|(source, target)| source != target)
        };
        self.tables.iter().filter(differs).map(|comparison| comparison.table).collect()
    }

    /// Returns the tables that the target does not have, with the number of rows that were not copied.
    pub fn uncopied_tables(&self) -> Vec<(TableKind, u64)> {
        let missing = self.tables.iter().filter(|comparison| comparison.target_checksum.is_none());
        let rows = missing.filter_map(|comparison| {
            comparison.source_checksum.map(|checksum| (comparison.table, checksum.row_count))
        });
        rows.filter(|(_, rows)| *rows > 0).collect()
    }

    /// Returns how many rows of the source belong to tables that the target has.
    pub fn count_copied_rows(&self) -> u64 {
        self.tables
            .iter()
            .filter(|comparison| comparison.target_checksum.is_some())
            .filter_map(|comparison| comparison.source_checksum)
            .map(|checksum| checksum.row_count)
            .sum()
    }
}

/// Progress of a copy, as stored in the target: the next page to copy is that of `table` after `cursor`.
#[derive(Debug, Serialize, Deserialize)]
struct StoredCopyProgress {
    /// The source's namespace of task ids, which identifies the store, and the checksum of its counters, which change
    /// whenever a node joins.
    task_id_namespace: i64,
    counters_checksum: String,
    table: TableKind,
    cursor: Option<CopyCursor>,
    /// Number of copied rows.
    rows_copied: u64,
}

/// Copies a store, or continues an interrupted copy, and compares both stores. The copy is complete if the report shows
/// no difference.
pub fn copy_store(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
    on_progress: &mut dyn FnMut(CopyProgressUpdate),
) -> Result<ComparisonReport, CopyError> {
    let mut progress = load_or_start_progress(source, target)?;
    let total_rows = count_rows_to_copy(source, target)?;
    on_progress(CopyProgressUpdate::CopyStarted { total_rows, already_copied: progress.rows_copied });
    copy_missing_rows(source, target, &mut progress, on_progress)?;
    let report = compare_stores(source, target, on_progress)?;
    if !source.is_unchanged_since_open().map_err(CopyError::ReadSource)? {
        return Err(CopyError::SourceWrittenDuringCopy);
    }
    if report.differing_tables().is_empty() && !target.finish_copy().map_err(CopyError::WriteTarget)? {
        return Err(CopyError::TargetWrittenDuringCopy);
    }
    Ok(report)
}

/// Compares two complete stores.
pub fn verify_copy(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
    on_progress: &mut dyn FnMut(CopyProgressUpdate),
) -> Result<ComparisonReport, CopyError> {
    if source.read_copy_progress().map_err(CopyError::ReadSource)?.is_some() {
        return Err(CopyError::SourceIncomplete);
    }
    if target.read_copy_progress().map_err(CopyError::WriteTarget)?.is_some() {
        return Err(CopyError::TargetIncomplete);
    }
    compare_stores(source, target, on_progress)
}

/// Loads the progress of an interrupted copy, or starts a new one. A target without progress must be empty.
fn load_or_start_progress(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
) -> Result<StoredCopyProgress, CopyError> {
    if source.read_copy_progress().map_err(CopyError::ReadSource)?.is_some() {
        return Err(CopyError::SourceIncomplete);
    }
    let (task_id_namespace, counters_checksum) =
        read_store_fingerprint(source).map_err(CopyError::ReadSource)?;
    if let Some(progress_json) = target.read_copy_progress().map_err(CopyError::WriteTarget)? {
        let progress: StoredCopyProgress =
            serde_json::from_str(&progress_json).map_err(|_| CopyError::OtherCopyUnfinished)?;
        return match (
            progress.task_id_namespace == task_id_namespace,
            progress.counters_checksum == counters_checksum,
        ) {
            (true, true) => Ok(progress),
            (true, false) => Err(CopyError::SourceChangedSinceStart),
            (false, _) => Err(CopyError::OtherCopyUnfinished),
        };
    }
    let nonempty_tables = describe_nonempty_tables(target).map_err(CopyError::WriteTarget)?;
    if nonempty_tables.is_empty() {
        return Ok(StoredCopyProgress {
            task_id_namespace,
            counters_checksum,
            table: TableKind::Counters,
            cursor: None,
            rows_copied: 0,
        });
    }
    match read_store_fingerprint(target).map_err(CopyError::WriteTarget)?.0 == task_id_namespace {
        true => Err(CopyError::AlreadyCopied),
        false => Err(CopyError::TargetNotEmpty(nonempty_tables.join(", "))),
    }
}

/// Reads the namespace of task ids and the checksum of all counters.
fn read_store_fingerprint(store: &mut dyn CopyEndpoint) -> StoreResult<(i64, String)> {
    let mut checksum = TableChecksum::default();
    let page = store.read_page(TableKind::Counters, None)?;
    page.rows.iter().for_each(|row| checksum.add_row(row));
    let Some(CopyRow::Counters(numbers)) = page.rows.first() else {
        return Err(StoreError::damaged("the store has no counters"));
    };
    Ok((numbers.task_id_namespace, checksum.format_checksum()))
}

/// Lists the tables that contain rows, with their counts. Counters always exist and are left out.
fn describe_nonempty_tables(store: &mut dyn CopyEndpoint) -> StoreResult<Vec<String>> {
    let mut found = Vec::new();
    for table in TableKind::ALL.iter().copied().filter(|table| *table != TableKind::Counters) {
        if let Some(rows @ 1..) = store.count_rows(table)? {
            found.push(format!("{table} ({rows})"));
        }
    }
    if let outbox_events @ 1.. = store.count_outbox_events()? {
        found.push(format!("outbox ({outbox_events})"));
    }
    Ok(found)
}

/// Counts the rows to copy.
fn count_rows_to_copy(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
) -> Result<u64, CopyError> {
    let mut total_rows = 0;
    for table in list_tables_of_target(target)? {
        total_rows += source.count_rows(table).map_err(CopyError::ReadSource)?.unwrap_or(0);
    }
    Ok(total_rows)
}

/// Returns the tables that the target has.
fn list_tables_of_target(target: &mut dyn CopyEndpoint) -> Result<Vec<TableKind>, CopyError> {
    let mut tables = Vec::new();
    for &table in TableKind::ALL {
        if target.count_rows(table).map_err(CopyError::WriteTarget)?.is_some() {
            tables.push(table);
        }
    }
    Ok(tables)
}

/// Copies the missing rows. One thread reads ahead while this one writes.
fn copy_missing_rows(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
    progress: &mut StoredCopyProgress,
    on_progress: &mut dyn FnMut(CopyProgressUpdate),
) -> Result<(), CopyError> {
    let (first_table, cursor) = (progress.table, progress.cursor.clone());
    let tables = list_tables_of_target(target)?.into_iter().filter(|table| *table >= first_table).collect();
    thread::scope(|scope| {
        let (page_sender, page_receiver) = sync_channel(PAGES_READ_AHEAD);
        let reader_thread = scope.spawn(move || read_pages(source, tables, cursor, &page_sender));
        // If writing fails, the channel closes and the reading thread stops.
        let written = write_pages(target, page_receiver, progress, on_progress);
        let read = join_thread(reader_thread).map_err(CopyError::ReadSource);
        written.and(read)
    })
}

/// Reads the first table from a cursor, and the others from the beginning.
fn read_pages(
    source: &mut dyn CopyEndpoint,
    tables: Vec<TableKind>,
    mut cursor: Option<CopyCursor>,
    page_sender: &SyncSender<(TableKind, CopyPage)>,
) -> StoreResult<()> {
    for table in tables {
        let mut after = cursor.take();
        loop {
            let page = source.read_page(table, after.as_ref())?;
            if page.rows.is_empty() {
                break;
            }
            after = Some(page.next_cursor.clone());
            if page_sender.send((table, page)).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn write_pages(
    target: &mut dyn CopyEndpoint,
    page_receiver: Receiver<(TableKind, CopyPage)>,
    progress: &mut StoredCopyProgress,
    on_progress: &mut dyn FnMut(CopyProgressUpdate),
) -> Result<(), CopyError> {
    for (table, page) in page_receiver {
        let rows = page.rows.len() as u64;
        (progress.table, progress.cursor) = (table, Some(page.next_cursor));
        progress.rows_copied += rows;
        let progress_json =
            serde_json::to_string(progress).map_err(|e| CopyError::WriteTarget(StoreError::damaged(e)))?;
        if !target
            .write_rows_and_progress(table, page.rows, &progress_json)
            .map_err(CopyError::WriteTarget)?
        {
            return Err(CopyError::TargetWrittenDuringCopy);
        }
        on_progress(CopyProgressUpdate::PageCopied { table, rows });
    }
    Ok(())
}

/// Reads both stores completely, in parallel, and compares their checksums.
pub fn compare_stores(
    source: &mut dyn CopyEndpoint,
    target: &mut dyn CopyEndpoint,
    on_progress: &mut dyn FnMut(CopyProgressUpdate),
) -> Result<ComparisonReport, CopyError> {
    let total_rows = 2 * count_rows_to_copy(source, target)?;
    on_progress(CopyProgressUpdate::ComparisonStarted { total_rows });
    thread::scope(|scope| {
        let (progress_sender, progress_receiver) = channel();
        let target_progress_sender = progress_sender.clone();
        let source_checksums = scope.spawn(move || compute_table_checksums(source, &progress_sender));
        let target_checksums = scope.spawn(move || compute_table_checksums(target, &target_progress_sender));
        progress_receiver.into_iter().for_each(on_progress);
        let source_checksums = join_thread(source_checksums).map_err(CopyError::ReadSource)?;
        let target_checksums = join_thread(target_checksums).map_err(CopyError::WriteTarget)?;
        let comparison =
            TableKind::ALL.iter().copied().zip(source_checksums.into_iter().zip(target_checksums));
        let tables = comparison.map(|(table, (source, target))| TableComparison {
            table,
            source_checksum: source,
            target_checksum: target,
        });
        Ok(ComparisonReport {
            tables: tables
                .filter(|comparison| comparison.source_checksum.or(comparison.target_checksum).is_some())
                .collect(),
        })
    })
}

/// Computes the checksum of each table.
fn compute_table_checksums(
    store: &mut dyn CopyEndpoint,
    progress_sender: &Sender<CopyProgressUpdate>,
) -> StoreResult<Vec<Option<TableChecksum>>> {
    let checksum = |table| match store.count_rows(table)? {
        Some(_) => compute_table_checksum(store, table, progress_sender).map(Some),
        None => Ok(None),
    };
    TableKind::ALL.iter().copied().map(checksum).collect()
}

fn compute_table_checksum(
    store: &mut dyn CopyEndpoint,
    table: TableKind,
    progress_sender: &Sender<CopyProgressUpdate>,
) -> StoreResult<TableChecksum> {
    let (mut checksum, mut after) = (TableChecksum::default(), None);
    loop {
        let page = store.read_page(table, after.as_ref())?;
        if page.rows.is_empty() {
            return Ok(checksum);
        }
        page.rows.iter().for_each(|row| checksum.add_row(row));
        // The receiver is gone if the other thread has failed; the result does not depend on it.
        let _ =
            progress_sender.send(CopyProgressUpdate::PageCompared { table, rows: page.rows.len() as u64 });
        after = Some(page.next_cursor);
    }
}

/// Returns the result of a thread, and propagates its panic.
fn join_thread<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

//! `pointsman move`: copies a store into another one and verifies the copy.

use std::error::Error;
use std::path::Path;

use clap::Args;
use pointsman_core::ErrorChain;
use pointsman_core::store::StoreError;
use pointsman_server::StartOrReloadError;
use pointsman_server::config::{DatabaseUrl, StoreUrl};
use pointsman_store::store_copy::{
    ComparisonReport, CopyEndpoint, CopyEndpointError, CopyError, CopyProgressUpdate, TableChecksum,
    TableComparison, TableKind, copy_store, verify_copy,
};
#[cfg(feature = "postgres")]
use pointsman_store_postgres::PgStoreCopy;
#[cfg(feature = "redis")]
use pointsman_store_redis::RedisStoreCopy;
#[cfg(feature = "sqlite")]
use pointsman_store_sqlite::SqliteStoreCopy;
use serde_json::json;

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, ExitReason, Failure};
use crate::node_process::start_failure;
use crate::output::{Output, Progress, format_count, print_to_stderr};

/// Copy all data to another store
///
/// Copies from SQLite, PostgreSQL or Redis to any of them: events, tasks, attempts and logs with their ids, chains,
/// orders, rules, schedules and their past times, idempotency keys and the audit log. Stop all servers on both stores
/// first. Tables and keys of other programs are not copied.
///
/// Then both stores are read and compared by counts and checksums. If the command is interrupted, repeat it to continue;
/// until it has finished, no server opens the target. The target must be empty: a file or schema that does not exist yet,
/// or a Redis database or prefix without data of a store. The source is not changed.
#[derive(Debug, Args)]
#[command(override_usage = "pointsman move [OPTIONS] --from <URL> --to <URL>")]
#[command(after_long_help = "\
Examples:
  pointsman move --from sqlite:pointsman.db --to postgres://pointsman@db.example/app
  pointsman move --from postgres://pointsman@db.example/app --to sqlite:copy.db
  pointsman move --from sqlite:pointsman.db --to 'redis://redis.example/1?prefix=pointsman:'
  pointsman move --from sqlite:pointsman.db --to postgres://pointsman@db.example/app --verify-only
  pointsman move --from sqlite:a.db --to sqlite:b.db -o json | jq .rows

The exit code is 1 if the stores differ afterwards, and if --verify-only finds an unfinished move to one of them. A \
server that was killed counts as stopped a minute after its last heartbeat. Pass a URL with a password in the \
environment, or the password alone in PGPASSWORD or REDISCLI_AUTH.")]
pub(crate) struct MoveStoreCommand {
    /// Source store: `sqlite:PATH`, `postgres://USER@HOST/DATABASE` or `redis://HOST:PORT` [env: POINTSMAN_FROM]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Target store [env: POINTSMAN_TO]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Copy nothing, only compare the two stores
    #[arg(long)]
    verify_only: bool,
}

impl MoveStoreCommand {
    pub(crate) fn run(self, global: &GlobalOptions) -> CommandResult {
        let output = Output::new(global);
        let from = read_store_url("from", self.from.as_deref(), "POINTSMAN_FROM")?;
        let to = read_store_url("to", self.to.as_deref(), "POINTSMAN_TO")?;
        if is_same_store(&from, &to) {
            return Err(Failure::usage("--from and --to name the same store"));
        }
        let mut source = open_copy_source(&from)?;
        let mut target = if self.verify_only { open_copy_source(&to)? } else { open_copy_target(&to)? };
        let progress = Progress::with_steps(0);
        let report = match self.verify_only {
            true => verify_copy(&mut *source, &mut *target, &mut |step| show_copy_progress(&progress, step)),
            false => copy_store(&mut *source, &mut *target, &mut |step| show_copy_progress(&progress, step)),
        };
        drop(progress);
        let report = report.map_err(store_copy_failure)?;
        print_comparison(output, &report, &from, &to)?;
        if !self.verify_only {
            warn_of_invalid_outbox_entries(&mut *source)?;
        }
        print_outcome(output, &report, self.verify_only)
    }
}

/// Reads a store URL from its option or environment variable.
fn read_store_url(option: &str, given: Option<&str>, variable: &str) -> CommandResult<StoreUrl> {
    let text = match given {
        Some(text) => text.to_owned(),
        None => std::env::var(variable).ok().filter(|url| !url.is_empty()).ok_or_else(|| {
            Failure::usage(format!("--{option} is missing"))
                .with_hint("See `pointsman move --help` for examples.")
        })?,
    };
    let url: StoreUrl = text.parse().map_err(|error| Failure::usage(format!("--{option}: {error}")))?;
    if given.is_some() && url.shared_database_url().is_some_and(DatabaseUrl::has_password) {
        print_to_stderr(format!(
            "warning: other users of this machine can see the password in --{option}; use {variable} instead"
        ));
    }
    match url {
        StoreUrl::SqliteMemory => {
            Err(Failure::usage(format!("--{option}: a store in memory cannot be moved")))
        }
        StoreUrl::Sqlite { .. } | StoreUrl::Postgres(_) | StoreUrl::Redis(_) => Ok(url),
    }
}

fn is_same_store(from: &StoreUrl, to: &StoreUrl) -> bool {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
    match (from, to) {
        (StoreUrl::Sqlite { path: one }, StoreUrl::Sqlite { path: other }) => {
            canonical(one) == canonical(other)
        }
        (one, other) => one.to_string() == other.to_string(),
    }
}

fn open_copy_source(url: &StoreUrl) -> CommandResult<Box<dyn CopyEndpoint>> {
    match url {
        #[cfg(feature = "sqlite")]
        StoreUrl::Sqlite { path } => {
            box_copy_endpoint(SqliteStoreCopy::open_source(path), StartOrReloadError::Sqlite)
        }
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(url) => {
            box_copy_endpoint(PgStoreCopy::open_source(url.full_url()), StartOrReloadError::Postgres)
        }
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => {
            box_copy_endpoint(RedisStoreCopy::open_source(url.full_url()), StartOrReloadError::Redis)
        }
        StoreUrl::SqliteMemory => Err(Failure::usage("a store in memory cannot be moved")),
        #[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "redis")))]
        missing => Err(Failure::usage(missing.missing_feature_error())),
    }
}

fn open_copy_target(url: &StoreUrl) -> CommandResult<Box<dyn CopyEndpoint>> {
    match url {
        #[cfg(feature = "sqlite")]
        StoreUrl::Sqlite { path } => {
            box_copy_endpoint(SqliteStoreCopy::open_target(path), StartOrReloadError::Sqlite)
        }
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(url) => {
            box_copy_endpoint(PgStoreCopy::open_target(url.full_url()), StartOrReloadError::Postgres)
        }
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => {
            box_copy_endpoint(RedisStoreCopy::open_target(url.full_url()), StartOrReloadError::Redis)
        }
        StoreUrl::SqliteMemory => Err(Failure::usage("a store in memory cannot be moved")),
        #[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "redis")))]
        missing => Err(Failure::usage(missing.missing_feature_error())),
    }
}

#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres", feature = "redis")),
    allow(dead_code, reason = "no store can be opened")
)]
fn box_copy_endpoint<M: CopyEndpoint + 'static, E: Error + 'static>(
    opened: Result<M, CopyEndpointError<E>>,
    to_start_error: impl FnOnce(E) -> StartOrReloadError,
) -> CommandResult<Box<dyn CopyEndpoint>> {
    let not_ready = match opened {
        Ok(store) => return Ok(Box::new(store)),
        Err(CopyEndpointError::OpenFailed(error)) => {
            return Err(start_failure(to_start_error(error)).with_hint("Nothing was copied."));
        }
        Err(not_ready) => not_ready,
    };
    let exit = match &not_ready {
        CopyEndpointError::InUse { .. }
        | CopyEndpointError::OutboxNotEmpty { .. }
        | CopyEndpointError::ObjectsMissingFromOutboxList { .. } => ExitReason::Unavailable,
        CopyEndpointError::NoStore(_) | CopyEndpointError::OpenFailed(_) => ExitReason::Runtime,
        CopyEndpointError::ConnectionPooler(_) => ExitReason::Usage,
    };
    Err(Failure::new(exit, not_ready))
}

/// Converts an error of the copy, with a hint.
fn store_copy_failure(error: CopyError) -> Failure {
    let message = ErrorChain(&error).to_string();
    match error {
        CopyError::ReadSource(StoreError::Unavailable(_))
        | CopyError::WriteTarget(StoreError::Unavailable(_)) => {
            Failure::new(ExitReason::Unavailable, message)
                .with_hint("Repeat the command to continue where it stopped.")
        }
        CopyError::ReadSource(_) | CopyError::SourceIncomplete => Failure::runtime(message),
        CopyError::TargetIncomplete => Failure::runtime(message)
            .with_hint("Repeat the command without --verify-only to continue where it stopped."),
        CopyError::WriteTarget(_) | CopyError::TargetNotEmpty(_) | CopyError::OtherCopyUnfinished => {
            Failure::runtime(message).with_hint(EMPTY_TARGET_HINT)
        }
        CopyError::AlreadyCopied => {
            Failure::runtime(message).with_hint("--verify-only compares the two stores.")
        }
        CopyError::SourceChangedSinceStart
        | CopyError::SourceWrittenDuringCopy
        | CopyError::TargetWrittenDuringCopy => {
            Failure::runtime(message).with_hint(format!("Stop all servers. {EMPTY_TARGET_HINT}"))
        }
    }
}

const EMPTY_TARGET_HINT: &str = "\
Use an empty target: a new file, a database without a schema `pointsman` (DROP SCHEMA pointsman CASCADE deletes the
schema and all its data), or another Redis database or prefix (FLUSHDB deletes all data of a database).";

fn show_copy_progress(progress: &Progress, step: CopyProgressUpdate) {
    let advance = |activity: &str, table: TableKind, rows: u64| {
        progress.advance(rows);
        progress.set_message(format!("{activity} {table}"));
    };
    match step {
        CopyProgressUpdate::CopyStarted { total_rows, already_copied } => {
            if already_copied > 0 {
                let rows = format_count(already_copied, "row", "rows");
                progress.print_above_bar(&format!("Continuing an interrupted move after {rows}."));
            }
            progress.set_position_and_total(already_copied, total_rows);
        }
        CopyProgressUpdate::PageCopied { table, rows } => advance("copying", table, rows),
        CopyProgressUpdate::ComparisonStarted { total_rows } => {
            progress.set_position_and_total(0, total_rows)
        }
        CopyProgressUpdate::PageCompared { table, rows } => advance("comparing", table, rows),
    }
}

/// Prints a table with the rows and the checksum of each copied table, or both as JSON.
fn print_comparison(
    output: Output,
    report: &ComparisonReport,
    from: &StoreUrl,
    to: &StoreUrl,
) -> CommandResult {
    let differences = report.differing_tables();
    if output.is_json() {
        let side_json =
            |side: TableChecksum| json!({"rows": side.row_count, "checksum": side.format_checksum()});
        let table_json = |comparison: &TableComparison| {
            json!({
                "section": comparison.table,
                "source": comparison.source_checksum.map(side_json),
                "target": comparison.target_checksum.map(side_json),
            })
        };
        return Ok(output.print_json(&json!({
            "from": from.to_string(),
            "to": to.to_string(),
            "rows": report.count_copied_rows(),
            "equal": differences.is_empty(),
            "sections": report.tables.iter().map(table_json).collect::<Vec<_>>(),
        }))?);
    }
    let rows = report.tables.iter().filter_map(|comparison| {
        let (source, target) = comparison.source_checksum.zip(comparison.target_checksum)?;
        let difference = match differences.contains(&comparison.table) {
            true => format!("differs: the target has {target}"),
            false => String::new(),
        };
        Some(vec![
            comparison.table.to_string(),
            source.row_count.to_string(),
            source.format_checksum(),
            difference,
        ])
    });
    Ok(output.print_table(&["section", "rows", "checksum", ""], rows.collect(), "")?)
}

/// Warns of invalid outbox entries of the source, which are not copied.
fn warn_of_invalid_outbox_entries(source: &mut dyn CopyEndpoint) -> CommandResult {
    let count =
        source.count_set_aside_entries().map_err(|error| store_copy_failure(CopyError::ReadSource(error)))?;
    if count > 0 {
        let entries = format_count(count, "invalid entry", "invalid entries");
        print_to_stderr(format!("warning: {entries} in the source's outbox (events.set.aside) not copied"));
    }
    Ok(())
}

fn print_outcome(output: Output, report: &ComparisonReport, verify_only: bool) -> CommandResult {
    let differences: Vec<String> = report.differing_tables().iter().map(TableKind::to_string).collect();
    if !differences.is_empty() {
        let failure = Failure::runtime(format!("the stores differ in: {}", differences.join(", ")));
        return Err(if verify_only { failure } else { failure.with_hint(EMPTY_TARGET_HINT) });
    }
    for (table, rows) in report.uncopied_tables() {
        print_to_stderr(format!(
            "warning: {} of {table} not copied: the target cannot store them",
            format_count(rows, "row", "rows")
        ));
    }
    if output.is_json() {
        return Ok(());
    }
    let rows = format_count(report.count_copied_rows(), "row", "rows");
    match verify_only {
        true => output.print_line(format!("Both stores contain the same {rows}."))?,
        false => output.print_line(format!(
            "{rows} copied and verified. Start servers on only one of the two stores: both would assign the same ids."
        ))?,
    }
    Ok(())
}

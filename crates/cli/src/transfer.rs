//! `pointsman move`: all that one store holds, to another.

use std::error::Error;
use std::path::Path;

use clap::Args;
use pointsman_core::store::StoreError;
use pointsman_server::StartError;
use pointsman_server::config::StoreUrl;
use pointsman_store::transfer::{
    Compared, Movable, MoveError, NotReady, Report, Section, Step, Tally, transfer, verify,
};
use pointsman_store_postgres::{Endpoint as PgEndpoint, PgMove};
use pointsman_store_redis::{Endpoint as RedisEndpoint, RedisMove};
use pointsman_store_sqlite::SqliteMove;
use serde_json::json;

use crate::args::Global;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, Progress, counted, say};
use crate::process::not_started;

/// Move everything to another store
///
/// From SQLite, PostgreSQL or Redis to any of them: events with their ids, chains, tasks with their ids, attempts and
/// logs, orders, rules, schedules and their ledger, idempotency keys, the audit. No server may work on either meanwhile.
/// What a program keeps in tables or keys of its own beside is not moved.
///
/// Then both are read again and compared by counts and checksums. Interrupted, the same command goes on where it
/// stopped; until it has ended, no server opens the target. The target must be empty: a file or a schema that is not
/// there yet, a database or a prefix on Redis that holds nothing of a store. The source stays as it is.
#[derive(Debug, Args)]
#[command(override_usage = "pointsman move [OPTIONS] --from <URL> --to <URL>")]
#[command(after_long_help = "\
Examples:
  pointsman move --from sqlite:pointsman.db --to postgres://pointsman@db.example/app
  pointsman move --from postgres://pointsman@db.example/app --to sqlite:copy.db
  pointsman move --from sqlite:pointsman.db --to 'redis://redis.example/1?prefix=pointsman:'
  pointsman move --from sqlite:pointsman.db --to postgres://pointsman@db.example/app --verify-only
  pointsman move --from sqlite:a.db --to sqlite:b.db -o json | jq .rows

It exits with 1 if the two differ afterwards, and names where, and if --verify-only finds that a move to one of them \
has not ended. A server that was killed counts as gone a minute after it was last heard of. A URL with a password is \
better given in the environment, or the password alone in PGPASSWORD or REDISCLI_AUTH.")]
pub(crate) struct Move {
    /// What is moved: `sqlite:PATH`, `postgres://USER@HOST/DATABASE` or `redis://HOST:PORT` [env: POINTSMAN_FROM]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Where it goes [env: POINTSMAN_TO]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Move nothing, but compare the two
    #[arg(long)]
    verify_only: bool,
}

impl Move {
    pub(crate) fn run(self, global: &Global) -> Result {
        let output = Output::new(global);
        let from = named("from", self.from.as_deref(), "POINTSMAN_FROM")?;
        let to = named("to", self.to.as_deref(), "POINTSMAN_TO")?;
        if is_same(&from, &to) {
            return Err(Failure::usage("--from and --to name the same store"));
        }
        let mut source = source_of(&from)?;
        let mut target = if self.verify_only { source_of(&to)? } else { target_of(&to)? };
        let progress = Progress::of(0);
        let report = match self.verify_only {
            true => verify(&mut *source, &mut *target, &mut |step| show(&progress, step)),
            false => transfer(&mut *source, &mut *target, &mut |step| show(&progress, step)),
        };
        drop(progress);
        let report = report.map_err(unmoved)?;
        tell(output, &report, &from, &to)?;
        if !self.verify_only {
            tell_set_aside(&mut *source)?;
        }
        verdict(output, &report, self.verify_only)
    }
}

/// The URL that an option names, or the environment.
fn named(option: &str, given: Option<&str>, variable: &str) -> Result<StoreUrl> {
    let url = match given {
        Some(url) => {
            if has_password(url) {
                say(format!(
                    "warning: whoever lists the processes of this machine sees the password in --{option}"
                ));
            }
            url.to_owned()
        }
        None => std::env::var(variable).ok().filter(|url| !url.is_empty()).ok_or_else(|| {
            Failure::usage(format!("--{option} is missing")).hint("See `pointsman move --help` for examples.")
        })?,
    };
    let url: StoreUrl = url.parse().map_err(|error| Failure::usage(format!("--{option}: {error}")))?;
    match url {
        StoreUrl::SqliteMemory => {
            Err(Failure::usage(format!("--{option}: a store in memory ends with its process")))
        }
        StoreUrl::Sqlite { .. } | StoreUrl::Postgres(_) | StoreUrl::Redis(_) => Ok(url),
    }
}

fn has_password(url: &str) -> bool {
    PgEndpoint::parse(url).is_ok_and(|endpoint| endpoint.has_password())
        || RedisEndpoint::parse(url).is_ok_and(|endpoint| endpoint.has_password())
}

fn is_same(from: &StoreUrl, to: &StoreUrl) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
    match (from, to) {
        (StoreUrl::Sqlite { path: one }, StoreUrl::Sqlite { path: other }) => real(one) == real(other),
        (one, other) => one.to_string() == other.to_string(),
    }
}

fn source_of(url: &StoreUrl) -> Result<Box<dyn Movable>> {
    match url {
        StoreUrl::Sqlite { path } => opened(SqliteMove::source(path), StartError::Store),
        StoreUrl::Postgres(url) => opened(PgMove::source(url.whole()), StartError::Postgres),
        StoreUrl::Redis(url) => opened(RedisMove::source(url.whole()), StartError::Redis),
        StoreUrl::SqliteMemory => Err(Failure::usage("a store in memory ends with its process")),
    }
}

fn target_of(url: &StoreUrl) -> Result<Box<dyn Movable>> {
    match url {
        StoreUrl::Sqlite { path } => opened(SqliteMove::target(path), StartError::Store),
        StoreUrl::Postgres(url) => opened(PgMove::target(url.whole()), StartError::Postgres),
        StoreUrl::Redis(url) => opened(RedisMove::target(url.whole()), StartError::Redis),
        StoreUrl::SqliteMemory => Err(Failure::usage("a store in memory ends with its process")),
    }
}

fn opened<M: Movable + 'static, E: Error + 'static>(
    opened: std::result::Result<M, NotReady<E>>,
    explain: impl FnOnce(E) -> StartError,
) -> Result<Box<dyn Movable>> {
    let not_ready = match opened {
        Ok(store) => return Ok(Box::new(store)),
        Err(NotReady::Unopened(error)) => return Err(not_started(explain(error)).hint("Nothing was moved.")),
        Err(not_ready) => not_ready,
    };
    let exit = match &not_ready {
        NotReady::InUse { .. } | NotReady::Undrained { .. } | NotReady::Stray { .. } => Exit::Unavailable,
        NotReady::NoStore(_) | NotReady::Unopened(_) => Exit::Runtime,
        NotReady::Pooled(_) => Exit::Usage,
    };
    Err(Failure::new(exit, not_ready))
}

/// Why it was not moved, and what to do about it.
fn unmoved(error: MoveError) -> Failure {
    let what = match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    match error {
        MoveError::Source(StoreError::Unavailable(_)) | MoveError::Target(StoreError::Unavailable(_)) => {
            Failure::new(Exit::Unavailable, what).hint("The same command goes on where it stopped.")
        }
        MoveError::Source(_) | MoveError::Part => Failure::runtime(what),
        MoveError::Unended => {
            Failure::runtime(what).hint("The same command without --verify-only goes on where it stopped.")
        }
        MoveError::Target(_) | MoveError::NotEmpty(_) | MoveError::Another => {
            Failure::runtime(what).hint(EMPTY)
        }
        MoveError::Done => Failure::runtime(what).hint("--verify-only compares the two."),
        MoveError::Changed | MoveError::Written | MoveError::Disturbed => {
            Failure::runtime(what).hint(format!("Stop all servers. {EMPTY}"))
        }
    }
}

const EMPTY: &str = "\
Begin with an empty target: a file that is not there yet, a database without a schema pointsman
(DROP SCHEMA pointsman CASCADE removes one with all that is in it), or another database or prefix on Redis
(FLUSHDB empties a database, of everything that is in it).";

fn show(progress: &Progress, step: Step) {
    let advance = |doing: &str, section: Section, rows: u64| {
        progress.advance(rows);
        progress.doing(format!("{doing} {section}"));
    };
    match step {
        Step::Copying { all, before } => {
            if before > 0 {
                let said = format!("goes on behind {}", counted(before, "row", "rows"));
                progress.say(&format!("An earlier move was cut off; this one {said}."));
            }
            progress.is_at(before, all);
        }
        Step::Copied { section, rows } => advance("copying", section, rows),
        Step::Comparing { all } => progress.is_at(0, all),
        Step::Compared { section, rows } => advance("comparing", section, rows),
    }
}

fn tell(output: Output, report: &Report, from: &StoreUrl, to: &StoreUrl) -> Result {
    let differences = report.differences();
    if output.is_json() {
        let tally = |tally: Tally| json!({"rows": tally.rows, "checksum": tally.checksum()});
        let section = |both: &Compared| {
            json!({
                "section": both.section,
                "source": both.source.map(tally),
                "target": both.target.map(tally),
            })
        };
        return Ok(output.json(&json!({
            "from": from.to_string(),
            "to": to.to_string(),
            "rows": report.rows(),
            "equal": differences.is_empty(),
            "sections": report.sections.iter().map(section).collect::<Vec<_>>(),
        }))?);
    }
    let rows = report.sections.iter().filter_map(|both| {
        let (source, target) = both.source.zip(both.target)?;
        let differs = match differences.contains(&both.section) {
            true => format!("differs: the target has {target}"),
            false => String::new(),
        };
        Some(vec![both.section.to_string(), source.rows.to_string(), source.checksum(), differs])
    });
    Ok(output.table(&["section", "rows", "checksum", ""], rows.collect(), "")?)
}

/// What is no event is moved nowhere, and should not be overlooked.
fn tell_set_aside(source: &mut dyn Movable) -> Result {
    let aside = source.set_aside().map_err(|error| unmoved(MoveError::Source(error)))?;
    if aside > 0 {
        let things = counted(aside, "thing", "things");
        say(format!(
            "warning: {things} set aside in the outbox of the source (events.set.aside) stayed there"
        ));
    }
    Ok(())
}

fn verdict(output: Output, report: &Report, verify_only: bool) -> Result {
    let differences: Vec<String> = report.differences().iter().map(Section::to_string).collect();
    if !differences.is_empty() {
        let failure = Failure::runtime(format!("the two differ in: {}", differences.join(", ")));
        return Err(if verify_only { failure } else { failure.hint(EMPTY) });
    }
    for (section, rows) in report.left_behind() {
        say(format!(
            "left behind, because the target has no place for it: {} of {section}",
            counted(rows, "row", "rows")
        ));
    }
    if output.is_json() {
        return Ok(());
    }
    let rows = counted(report.rows(), "row", "rows");
    match verify_only {
        true => output.line(format!("Both hold the same {rows}."))?,
        false => output.line(format!(
            "{rows} moved, and found equal. Start servers on one of the two only: both would go on with the same ids."
        ))?,
    }
    Ok(())
}

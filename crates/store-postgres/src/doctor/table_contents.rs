//! Checks the store's own tables: nodes, the outbox, and dead rows.

use pointsman_store::finding::{Finding, format_age, format_bytes};

use super::{CheckResult, Doctor, format_shortened_list};
use crate::session::query;

/// Other nodes take over the tasks of a node after this time without a heartbeat.
const SILENT_NODE_SECONDS: f64 = 30.0;
/// An event that waits longer in the outbox is stuck.
const STUCK_OUTBOX_SECONDS: f64 = 60.0;
/// The query counts the rows of the outbox up to one more than this.
const MAX_COUNTED_OUTBOX_ROWS: i64 = 100_000;
/// A table with fewer dead rows than this is never reported.
const MIN_REPORTED_DEAD_ROWS: i64 = 20_000;
/// Dead rows are reported if the last vacuum is longer ago than this: it may be blocked.
const MAX_VACUUM_AGE_SECONDS: f64 = 600.0;
/// More dead rows than this are reported, however recent the last vacuum is.
const ALWAYS_REPORTED_DEAD_ROWS: i64 = 5_000_000;

impl Doctor {
    /// Checks that every node sends heartbeats; returns the number of live nodes.
    pub(super) async fn check_nodes(&self) -> CheckResult<i64> {
        let (mut live, mut silent, mut copied) = (Vec::new(), Vec::new(), Vec::new());
        for row in self.query_read_only(query!("doctor/list_nodes_by_heartbeat"), &[]).await? {
            let (name, seconds): (String, f64) = (row.try_get(0)?, row.try_get(1)?);
            match (row.try_get(2)?, seconds > SILENT_NODE_SECONDS) {
                (true, _) => copied.push(name),
                (false, true) => silent.push(format!("{name} for {}", format_age(seconds))),
                (false, false) => live.push(name),
            }
        }
        let count = live.len() as i64;
        let mut found = if live.is_empty() {
            "none is running".into()
        } else {
            format!("{count} live: {}", format_shortened_list(&live))
        };
        if !copied.is_empty() {
            let nodes = format_shortened_list(&copied);
            let copied_note = "still running when their store was copied here";
            found =
                format!("{found}; {copied_note}: {nodes} (their tasks are released when a node starts here)");
        }
        let finding = match silent.is_empty() {
            true => Finding::ok("nodes", found),
            false => Finding::warning(
                "nodes",
                format!("{found}; silent: {}", format_shortened_list(&silent)),
            )
            .with_advice(
                "If it was killed: its tasks go to the other nodes, or to the next node that starts. If it \
                 is running: check its log and its clock.",
            ),
        };
        Ok((vec![finding], count))
    }

    pub(super) async fn check_outbox(&self, nodes: Option<i64>) -> CheckResult<()> {
        let rows = self.query_read_only(query!("doctor/count_waiting_outbox_rows"), &[]).await?;
        let Some(row) = rows.first() else { return Ok((vec![], ())) };
        let (waiting, seconds): (i64, f64) = (row.try_get(0)?, row.try_get(1)?);
        let count_text = if waiting > MAX_COUNTED_OUTBOX_ROWS {
            format!("more than {MAX_COUNTED_OUTBOX_ROWS}")
        } else {
            waiting.to_string()
        };
        let found = match waiting {
            0 => "empty".into(),
            1 => format!("1 event waiting for {}", format_age(seconds)),
            _ => format!("{count_text} events waiting, the first for {}", format_age(seconds)),
        };
        let outbox = match (seconds > STUCK_OUTBOX_SECONDS, nodes) {
            (false, _) => Finding::ok("outbox", found),
            (true, Some(0)) => Finding::warning("outbox", found).with_advice("Start a node: it drains them."),
            (true, _) => Finding::warning("outbox", found).with_advice(
                "A node should have drained them by now: check the nodes' logs, and the transactions above.",
            ),
        };
        Ok((vec![outbox, self.check_refused_rows().await?], ()))
    }

    async fn check_refused_rows(&self) -> Result<Finding, tokio_postgres::Error> {
        let rows = self.query_read_only(query!("doctor/count_refused_outbox_rows"), &[]).await?;
        let Some(row) = rows.first() else { return Ok(Finding::ok("refused", "unknown")) };
        let (count, last): (i64, &str) = (row.try_get(0)?, row.try_get(1)?);
        Ok(match count {
            0 => Finding::ok("refused", "no row was set aside"),
            _ => {
                let rows = if count == 1 { "row" } else { "rows" };
                let found = format!("{count} {rows} of the outbox could not become events, the last: {last}");
                Finding::warning("refused", found).with_advice(
                    "List them: SELECT n, type, reason FROM pointsman.outbox_refused. Programs that insert into \
                     the outbox should call pointsman.emit instead, which reports errors at once.",
                )
            }
        })
    }

    pub(super) async fn check_dead_rows(&self) -> CheckResult<()> {
        let mut findings = Vec::new();
        for row in self.query_read_only(query!("doctor/list_table_statistics"), &[]).await? {
            let (name, live_rows, dead_rows): (&str, i64, i64) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let (bytes, vacuumed_seconds_ago): (i64, Option<f64>) = (row.try_get(3)?, row.try_get(4)?);
            let is_autovacuum_off: bool = row.try_get(5)?;
            let when =
                vacuumed_seconds_ago.map_or("never".into(), |seconds| format!("{} ago", format_age(seconds)));
            let bytes = format_bytes(bytes.unsigned_abs());
            let found = format!("{name}: {live_rows} live rows, {dead_rows} dead, {bytes}, vacuumed {when}");
            if is_autovacuum_off || needs_vacuum(live_rows, dead_rows, vacuumed_seconds_ago) {
                let why = if is_autovacuum_off {
                    "autovacuum is off for it: ALTER TABLE … RESET (autovacuum_enabled). "
                } else {
                    ""
                };
                let advice = format!(
                    "{why}Find out what blocks vacuum (transactions, prepared transactions, slots), then: \
                     VACUUM pointsman.{name}"
                );
                findings.push(Finding::warning("tables", found).with_advice(advice));
            }
        }
        if findings.is_empty() {
            findings.push(Finding::ok("tables", "vacuum keeps up"));
        }
        Ok((findings, ()))
    }
}

/// True if dead rows accumulate. Under load many dead rows between two vacuums are normal.
fn needs_vacuum(live_rows: i64, dead_rows: i64, vacuumed_seconds_ago: Option<f64>) -> bool {
    let long_ago = vacuumed_seconds_ago.is_none_or(|seconds| seconds > MAX_VACUUM_AGE_SECONDS);
    dead_rows > live_rows
        && (dead_rows > MIN_REPORTED_DEAD_ROWS && long_ago || dead_rows > ALWAYS_REPORTED_DEAD_ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_dead_rows_need_vacuum_unless_it_ran_recently() {
        assert!(!needs_vacuum(1, 19_000, None));
        assert!(needs_vacuum(1, 21_000, None) && needs_vacuum(1, 21_000, Some(700.0)));
        assert!(!needs_vacuum(1, 21_000, Some(30.0)) && !needs_vacuum(1_000_000, 21_000, None));
        assert!(needs_vacuum(1, 6_000_000, Some(30.0)));
    }
}

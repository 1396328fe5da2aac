//! Checks what other programs do on the server: connections, transactions, replication slots.

use pointsman_store::finding::{Finding, format_age, format_bytes};

use super::{CheckResult, Doctor, format_shortened_list};
use crate::error::quote_identifier;
use crate::pool::MAX_CONCURRENT_READS;
use crate::session::query;

/// Limit of the connections of a node: one for the writer, one that listens, one that drops partitions, and those of
/// the read pool.
const MAX_CONNECTIONS_PER_NODE: i64 = 3 + MAX_CONCURRENT_READS as i64;
/// An active replication slot that retains more WAL than this is reported.
const MAX_SLOT_WAL_BYTES: i64 = 10 << 30;

impl Doctor {
    /// Checks whether the server allows the connections of this many nodes; of one node, if none runs or the number is
    /// unknown.
    pub(super) async fn check_connections(&self, nodes: Option<i64>) -> CheckResult<()> {
        let rows = self.query_read_only(query!("doctor/count_connections"), &[]).await?;
        let Some(row) = rows.first() else { return Ok((vec![], ())) };
        let (limit, others, own): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let nodes = nodes.unwrap_or(0).max(1);
        let needed = nodes * MAX_CONNECTIONS_PER_NODE;
        let limits = [("the role", row.try_get(3)?), ("the database", row.try_get(4)?)];
        let exceeded = limits.into_iter().find(|(_, limit)| (0..needed).contains(limit));
        let demand =
            format!("{nodes} {} up to {needed}", if nodes == 1 { "node takes" } else { "nodes take" });
        let finding = match exceeded {
            Some((owner, limit)) => {
                Finding::warning("connections", format!("{demand}, and {owner} may have {limit}"))
                    .with_advice("Raise its CONNECTION LIMIT.")
            }
            None if others + needed > limit => {
                Finding::warning("connections", format!("{demand}, others have {others} of {limit}"))
                    .with_advice("Raise max_connections, or put PgBouncer in between (pooler=transaction).")
            }
            None => Finding::ok(
                "connections",
                format!("{demand}; the limit is {limit}; Pointsman has {own}, others {others}"),
            ),
        };
        Ok((vec![finding], ()))
    }

    pub(super) async fn check_long_transactions(&self) -> CheckResult<()> {
        let threshold = self.long_transaction_threshold.as_secs_f64();
        let rows =
            self.query_read_only(query!("doctor/list_long_transactions", FLOAT8), &[&threshold]).await?;
        let (mut open, mut pids, mut sees_all) = (Vec::new(), Vec::new(), true);
        for row in &rows {
            sees_all = row.try_get(0)?;
            let Some(pid) = row.try_get::<_, Option<i32>>(1)? else { continue };
            let (user, program): (&str, &str) = (row.try_get(2)?, row.try_get(3)?);
            let (state, seconds): (&str, f64) = (row.try_get(4)?, row.try_get(5)?);
            let began: Option<&str> = row.try_get(6)?;
            let program = if program.is_empty() { String::new() } else { format!(" ({program})") };
            let (open_for, began) = (format_age(seconds), began.unwrap_or("an unknown time"));
            open.push(format!(
                "pid {pid} of {user}{program}, open for {open_for}, {state}, its last statement began at \
                 {began} UTC"
            ));
            pids.push(pid.to_string());
        }
        let finding = match (open.is_empty(), sees_all) {
            (false, _) => {
                Finding::warning("transactions", format_shortened_list(&open)).with_advice(format!(
                    "While one is open, vacuum keeps every row that it could see, and expired rows \
                 stay on disk. End it in its program, or: SELECT pg_terminate_backend({})",
                    pids.first().map_or("", String::as_str)
                ))
            }
            (true, true) => {
                Finding::ok("transactions", format!("none is open for longer than {}", format_age(threshold)))
            }
            (true, false) => {
                let role = quote_identifier(self.endpoint.role());
                let found = "none of this role is open for long; those of other roles cannot be seen";
                Finding::ok("transactions", found)
                    .with_advice(format!("To see them: GRANT pg_read_all_stats TO {role}"))
            }
        };
        Ok((vec![finding], ()))
    }

    pub(super) async fn check_prepared_transactions(&self) -> CheckResult<()> {
        let rows = self
            .query_read_only(
                query!("doctor/list_prepared_transactions", FLOAT8),
                &[&self.long_transaction_threshold.as_secs_f64()],
            )
            .await?;
        let mut old_transactions = Vec::new();
        for row in &rows {
            let (gid, owner, seconds): (&str, &str, f64) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            old_transactions.push(format!("{gid:?} of {owner}, for {}", format_age(seconds)));
        }
        let finding = match old_transactions.is_empty() {
            true => Finding::ok("prepared transactions", "none is left"),
            false => Finding::warning("prepared transactions", format_shortened_list(&old_transactions)).with_advice(
                "They keep their locks and block vacuum, even across a restart. Find out who prepared them, \
                 then COMMIT PREPARED or ROLLBACK PREPARED.",
            ),
        };
        Ok((vec![finding], ()))
    }

    pub(super) async fn check_replication_slots(&self) -> CheckResult<()> {
        let mut problems = Vec::new();
        for row in self.query_read_only(query!("doctor/list_replication_slots"), &[]).await? {
            let (name, active): (&str, bool) = (row.try_get(0)?, row.try_get(1)?);
            let (status, retained_bytes): (&str, i64) = (row.try_get(2)?, row.try_get(3)?);
            let size_text = format_bytes(retained_bytes.unsigned_abs());
            match (status, active) {
                ("lost", _) => problems.push(format!("{name} has lost WAL that it needs")),
                (_, false) => {
                    problems.push(format!("{name} retains {size_text} of WAL, and nothing reads from it"))
                }
                (_, true) if retained_bytes > MAX_SLOT_WAL_BYTES => {
                    problems.push(format!("{name} retains {size_text} of WAL"))
                }
                (_, true) => {}
            }
        }
        let finding = match problems.is_empty() {
            true => Finding::ok("replication slots", "none retains too much WAL"),
            false => Finding::warning("replication slots", format_shortened_list(&problems)).with_advice(
                "They can fill the disk, and then nothing commits. Let their readers catch up, or drop \
                 them: SELECT pg_drop_replication_slot(…); max_slot_wal_keep_size limits what they retain.",
            ),
        };
        Ok((vec![finding], ()))
    }
}

//! What others do on the server that a store feels.

use pointsman_store::finding::{Finding, age, size};

use super::{Checked, Doctor, listed};
use crate::error::quoted;
use crate::pool::READERS;
use crate::session::query;

/// How many connections a node has at most: one that writes, one that listens, one that sweeps now and then, and those
/// that read.
const EACH_NODE: i64 = 3 + READERS as i64;
/// A slot that somebody reads from may keep so much of the log.
const MUCH: i64 = 10 << 30;

impl Doctor {
    /// Whether there is room for the connections of so many nodes, or of a first one.
    pub(super) async fn connections(&self, nodes: Option<i64>) -> Checked<()> {
        let rows = self.ask(query!("doctor/connections"), &[]).await?;
        let Some(row) = rows.first() else { return Ok((vec![], ())) };
        let (room, others, mine): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let nodes = nodes.unwrap_or(0).max(1);
        let needed = nodes * EACH_NODE;
        let limits = [("the role", row.try_get(3)?), ("the database", row.try_get(4)?)];
        let tight = limits.into_iter().find(|(_, limit)| (0..needed).contains(limit));
        let of_nodes =
            format!("{nodes} {} up to {needed}", if nodes == 1 { "node takes" } else { "nodes take" });
        let finding = match tight {
            Some((whose, limit)) => {
                Finding::warning("connections", format!("{of_nodes}, and {whose} may have {limit}"))
                    .advise("Raise its CONNECTION LIMIT.")
            }
            None if others + needed > room => {
                Finding::warning("connections", format!("{of_nodes}, others have {others} of {room}"))
                    .advise("Raise max_connections, or put PgBouncer in between (pooler=transaction).")
            }
            None => Finding::ok(
                "connections",
                format!("{of_nodes}; there may be {room}, we have {mine}, others {others}"),
            ),
        };
        Ok((vec![finding], ()))
    }

    pub(super) async fn transactions(&self) -> Checked<()> {
        let long = self.long.as_secs_f64();
        let rows = self.ask(query!("doctor/transactions", FLOAT8), &[&long]).await?;
        let (mut open, mut pids, mut sees_all) = (Vec::new(), Vec::new(), true);
        for row in &rows {
            sees_all = row.try_get(0)?;
            let Some(pid) = row.try_get::<_, Option<i32>>(1)? else { continue };
            let (user, program): (&str, &str) = (row.try_get(2)?, row.try_get(3)?);
            let (state, seconds): (&str, f64) = (row.try_get(4)?, row.try_get(5)?);
            let began: Option<&str> = row.try_get(6)?;
            let program = if program.is_empty() { String::new() } else { format!(" ({program})") };
            let (open_for, began) = (age(seconds), began.unwrap_or("an unknown time"));
            open.push(format!(
                "pid {pid} of {user}{program}, open for {open_for}, {state}, its last statement began at \
                 {began} UTC"
            ));
            pids.push(pid.to_string());
        }
        let finding = match (open.is_empty(), sees_all) {
            (false, _) => Finding::warning("transactions", listed(&open)).advise(format!(
                "As long as one is open, vacuum removes nothing that it could see, and what is forgotten \
                 stays on disk. End it where it was begun, or: SELECT pg_terminate_backend({})",
                pids.first().map_or("", String::as_str)
            )),
            (true, true) => {
                Finding::ok("transactions", format!("none is open for longer than {}", age(long)))
            }
            (true, false) => {
                let role = quoted(self.endpoint.role());
                let found = "none of this role's is open for long; those of others cannot be seen";
                Finding::ok("transactions", found)
                    .advise(format!("To see them: GRANT pg_read_all_stats TO {role}"))
            }
        };
        Ok((vec![finding], ()))
    }

    pub(super) async fn prepared(&self) -> Checked<()> {
        let rows = self.ask(query!("doctor/prepared", FLOAT8), &[&self.long.as_secs_f64()]).await?;
        let mut left = Vec::new();
        for row in &rows {
            let (gid, owner, seconds): (&str, &str, f64) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            left.push(format!("{gid:?} of {owner}, for {}", age(seconds)));
        }
        let finding = match left.is_empty() {
            true => Finding::ok("prepared transactions", "none is left"),
            false => Finding::warning("prepared transactions", listed(&left)).advise(
                "They hold what they have locked, and vacuum back, also over a restart. Ask whose they are, \
                 then COMMIT PREPARED or ROLLBACK PREPARED.",
            ),
        };
        Ok((vec![finding], ()))
    }

    pub(super) async fn slots(&self) -> Checked<()> {
        let mut bad = Vec::new();
        for row in self.ask(query!("doctor/slots"), &[]).await? {
            let (name, active): (&str, bool) = (row.try_get(0)?, row.try_get(1)?);
            let (status, kept): (&str, i64) = (row.try_get(2)?, row.try_get(3)?);
            let keeps = size(kept.unsigned_abs());
            match (status, active) {
                ("lost", _) => bad.push(format!("{name} has lost what it needs")),
                (_, false) => bad.push(format!("{name} keeps {keeps} of the log, and nobody reads from it")),
                (_, true) if kept > MUCH => bad.push(format!("{name} keeps {keeps} of the log")),
                (_, true) => {}
            }
        }
        let finding = match bad.is_empty() {
            true => Finding::ok("replication slots", "none holds the log back"),
            false => Finding::warning("replication slots", listed(&bad)).advise(
                "They can fill the disk, and then nothing commits. Let their readers catch up, or drop \
                 them: SELECT pg_drop_replication_slot(…); max_slot_wal_keep_size limits what they keep.",
            ),
        };
        Ok((vec![finding], ()))
    }
}

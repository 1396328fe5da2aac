//! What our own tables tell: nodes, the outbox, and what vacuum has left to do.

use pointsman_store::finding::{Finding, age, size};

use super::{Checked, Doctor, listed};
use crate::session::query;

/// A node that is silent for longer is given up by the others.
const SILENT: f64 = 30.0;
/// What is in the outbox for longer is not being taken.
const STUCK: f64 = 60.0;
/// So many rows the outbox is counted up to.
const COUNTED: i64 = 100_000;
/// Fewer dead rows than this are no matter.
const DEAD: i64 = 20_000;
/// Within this many seconds vacuum has come by, if it comes at all.
const VACUUMED: f64 = 600.0;
/// More dead rows than this are too many, however often vacuum comes.
const FAR_TOO_MANY: i64 = 5_000_000;

impl Doctor {
    /// Answers how many live.
    pub(super) async fn nodes(&self) -> Checked<i64> {
        let (mut live, mut silent, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
        for row in self.ask(query!("doctor/nodes"), &[]).await? {
            let (name, seconds): (String, f64) = (row.try_get(0)?, row.try_get(1)?);
            match (row.try_get(2)?, seconds > SILENT) {
                (true, _) => elsewhere.push(name),
                (false, true) => silent.push(format!("{name} for {}", age(seconds))),
                (false, false) => live.push(name),
            }
        }
        let count = live.len() as i64;
        let mut told =
            if live.is_empty() { "none runs".into() } else { format!("{count} live: {}", listed(&live)) };
        if !elsewhere.is_empty() {
            let nodes = listed(&elsewhere);
            let moved = "had not left the store that was moved here";
            told = format!("{told}; {moved}: {nodes} (what it ran is free when a node starts here)");
        }
        let finding = match silent.is_empty() {
            true => Finding::ok("nodes", told),
            false => Finding::warning("nodes", format!("{told}; silent: {}", listed(&silent))).advise(
                "If it was killed: what it ran goes to the others, or to the next node that starts. If it \
                 runs: see its log, and its clock.",
            ),
        };
        Ok((vec![finding], count))
    }

    pub(super) async fn outbox(&self, nodes: Option<i64>) -> Checked<()> {
        let rows = self.ask(query!("doctor/outbox"), &[]).await?;
        let Some(row) = rows.first() else { return Ok((vec![], ())) };
        let (waiting, seconds): (i64, f64) = (row.try_get(0)?, row.try_get(1)?);
        let shown = if waiting > COUNTED { format!("more than {COUNTED}") } else { waiting.to_string() };
        let found = match waiting {
            0 => "empty".into(),
            1 => format!("1 event has waited for {}", age(seconds)),
            _ => format!("{shown} events wait, the first for {}", age(seconds)),
        };
        let outbox = match (seconds > STUCK, nodes) {
            (false, _) => Finding::ok("outbox", found),
            (true, Some(0)) => Finding::warning("outbox", found).advise("Start a node: it takes them."),
            (true, _) => Finding::warning("outbox", found).advise(
                "A node should have taken them by now: see the nodes' logs, and the transactions above.",
            ),
        };
        Ok((vec![outbox, self.refused().await?], ()))
    }

    async fn refused(&self) -> Result<Finding, tokio_postgres::Error> {
        let rows = self.ask(query!("doctor/refused"), &[]).await?;
        let Some(row) = rows.first() else { return Ok(Finding::ok("refused", "unknown")) };
        let (count, last): (i64, &str) = (row.try_get(0)?, row.try_get(1)?);
        Ok(match count {
            0 => Finding::ok("refused", "nothing was put aside"),
            _ => {
                let rows = if count == 1 { "row" } else { "rows" };
                let found = format!("{count} {rows} of the outbox could not become events, the last: {last}");
                Finding::warning("refused", found).advise(
                    "Look at them: SELECT n, type, reason FROM pointsman.outbox_refused. Whoever writes into \
                     the outbox by hand should call pointsman.emit, which says at once what is wrong.",
                )
            }
        })
    }

    pub(super) async fn tables(&self) -> Checked<()> {
        let mut findings = Vec::new();
        for row in self.ask(query!("doctor/tables"), &[]).await? {
            let (name, live, dead): (&str, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let (bytes, vacuumed): (i64, Option<f64>) = (row.try_get(3)?, row.try_get(4)?);
            let by_people: bool = row.try_get(5)?;
            let when = vacuumed.map_or("never".into(), |seconds| format!("{} ago", age(seconds)));
            let bytes = size(bytes.unsigned_abs());
            let told = format!("{name}: {live} live rows, {dead} dead, {bytes}, vacuumed {when}");
            if by_people || is_neglected(live, dead, vacuumed) {
                let why = if by_people {
                    "autovacuum is off for it: ALTER TABLE … RESET (autovacuum_enabled). "
                } else {
                    ""
                };
                let advice = format!(
                    "{why}See what holds vacuum back (transactions, prepared transactions, slots), then: \
                     VACUUM pointsman.{name}"
                );
                findings.push(Finding::warning("tables", told).advise(advice));
            }
        }
        if findings.is_empty() {
            findings.push(Finding::ok("tables", "vacuum keeps up"));
        }
        Ok((findings, ()))
    }
}

/// Whether dead rows stay. Under load there are many between two vacuums.
fn is_neglected(live: i64, dead: i64, vacuumed: Option<f64>) -> bool {
    let long_ago = vacuumed.is_none_or(|seconds| seconds > VACUUMED);
    dead > live && (dead > DEAD && long_ago || dead > FAR_TOO_MANY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_rows_are_a_matter_if_they_stay() {
        assert!(!is_neglected(1, 19_000, None));
        assert!(is_neglected(1, 21_000, None) && is_neglected(1, 21_000, Some(700.0)));
        assert!(!is_neglected(1, 21_000, Some(30.0)) && !is_neglected(1_000_000, 21_000, None));
        assert!(is_neglected(1, 6_000_000, Some(30.0)));
    }
}

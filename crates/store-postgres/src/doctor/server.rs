//! The server itself: whether it is one that a store can be kept on, and how far away it is.

use std::time::{Duration, Instant, SystemTime};

use pointsman_store::finding::{Finding, clock};
use tokio_postgres::Error;

use super::{Checked, Doctor};
use crate::migrate::OLDEST_SERVER;
use crate::session::query;

/// A commit takes a few ways there and back; beyond this they are felt.
const FAR: Duration = Duration::from_millis(20);
const ROUNDS: u32 = 5;

impl Doctor {
    /// Answers whether its version is new enough.
    pub(super) async fn server(&self) -> Checked<bool> {
        let way = self.way().await?;
        let rows = self.ask(query!("doctor/server"), &[]).await?;
        let Some(row) = rows.first() else { return Ok((vec![], false)) };
        let (tls, near): (&str, bool) = (row.try_get(5)?, row.try_get(6)?);
        let mut findings = vec![self.connection(way, tls, near)];
        let (number, shown): (i32, &str) = (row.try_get(0)?, row.try_get(1)?);
        let new_enough = number / 10_000 >= OLDEST_SERVER;
        findings.push(match new_enough {
            true => Finding::ok("version", format!("PostgreSQL {shown}")),
            false => Finding::fault(
                "version",
                format!("PostgreSQL {shown}, and {OLDEST_SERVER} or newer is needed"),
            )
            .advise("Upgrade it, or name another."),
        });
        let encoding: &str = row.try_get(2)?;
        findings.push(match encoding {
            "UTF8" => Finding::ok("encoding", "UTF8"),
            _ => Finding::fault("encoding", format!("{encoding}, and UTF8 is needed"))
                .advise("Make another: CREATE DATABASE … TEMPLATE template0 ENCODING UTF8"),
        });
        findings.push(writable(row.try_get(3)?, row.try_get(4)?));
        Ok((findings, new_enough))
    }

    fn connection(&self, way: Duration, tls: &str, near: bool) -> Finding {
        let encrypted = if tls.is_empty() { "not encrypted".into() } else { format!("encrypted ({tls})") };
        let way_ms = way.as_secs_f64() * 1000.0;
        let found = format!("{}, {encrypted}, {way_ms:.1} ms there and back", self.endpoint);
        // Behind a pooler it is told of the way from there.
        if tls.is_empty() && !near && !self.endpoint.is_pooled() {
            return Finding::warning("connection", found).advise(
                "Whoever is on the way can read it. Give the server a certificate, and add \
                 sslmode=verify-full and sslrootcert to the URL.",
            );
        }
        if way > FAR {
            return Finding::warning("connection", found)
                .advise("Every commit takes that long a few times. Run the nodes near the database.");
        }
        Finding::ok("connection", found)
    }

    /// The shortest time that a way there and back takes.
    async fn way(&self) -> Result<Duration, Error> {
        let mut shortest = Duration::MAX;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            self.session.batch("SELECT").await?;
            shortest = shortest.min(begun.elapsed());
        }
        Ok(shortest)
    }

    pub(super) async fn clock(&self) -> Checked<()> {
        let (before, begun) = (SystemTime::now(), Instant::now());
        let rows = self.ask(query!("read/clock"), &[]).await?;
        let Some(row) = rows.first() else { return Ok((vec![], ())) };
        let (there, took) = (row.try_get::<_, i64>(0)? as f64 / 1e6, begun.elapsed().as_secs_f64());
        let before = before.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Ok((vec![clock(there - before, took)], ()))
    }
}

fn writable(standby: bool, read_only: bool) -> Finding {
    match (standby, read_only) {
        (true, _) => Finding::fault("writable", "this is a standby, which only its primary writes to")
            .advise("Name the primary in the URL; with several hosts, add target_session_attrs=read-write."),
        (false, true) => Finding::fault("writable", "default_transaction_read_only is on for this role")
            .advise("Turn it off: ALTER ROLE … SET default_transaction_read_only = off"),
        (false, false) => Finding::ok("writable", "yes"),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_store::finding::Verdict;

    use super::*;

    #[test]
    fn a_standby_is_no_place_for_a_store() {
        assert_eq!(writable(true, false).verdict, Verdict::Fault);
        assert_eq!(writable(false, true).verdict, Verdict::Fault);
        assert_eq!(writable(false, false).verdict, Verdict::Ok);
    }
}

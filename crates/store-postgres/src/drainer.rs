//! The task that looks after the outbox.
//!
//! It sleeps until somebody rings, and looks again by itself after a while: whoever emitted before it fell asleep and
//! commits after does not ring. That while begins short and grows, so that such an event waits about as long again as
//! its transaction took, and an idle node hardly looks at all. A look that finds nothing is one plain read.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::outage::Outage;
use pointsman_core::store::{Emission, Idempotency, StoreError};
use pointsman_core::{HandlingKey, NewEvent, ObjectKey, Tenant};
use pointsman_store::clock::CallerTime;
use pointsman_store::error::Result;
use pointsman_store::news::News;
use pointsman_store::{Asked, Place, Txn, Writer, foresee_emissions};
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;

use crate::outbox::{self, Blame, Drained, RefusedRows, Standing, Step};
use crate::pool::Pool;
use crate::rows::get;
use crate::session::{Query, query};
use crate::tables::PgTables;

/// How soon it looks again after it found something, and how seldom at last.
const SOON: Duration = Duration::from_millis(2);
const SELDOM: Duration = Duration::from_millis(250);
/// How often it removes what is too old.
const SWEEP: Duration = Duration::from_secs(60);
/// So many rows go at a time.
const PIECE: i64 = 5000;
/// For how many seconds receipts and idempotency keys are remembered, and rows that were set aside.
const DAY: i64 = 24 * 3600;
const MONTH: i64 = 30 * DAY;

struct Drainer {
    pool: Pool,
    writer: Writer<PgTables>,
    /// Nobody asks for events to be taken from the outbox, so that nobody says what time it is.
    time: Arc<CallerTime>,
    refused: Arc<RefusedRows>,
}

/// What a look found.
struct Sight {
    standing: Standing,
    /// Whoever emits now rings.
    asleep: bool,
    /// The last of the rows that wait.
    last: Option<i64>,
    /// As much of them as tells what they will touch.
    likely: Vec<Emission>,
}

/// Why rows were not taken.
enum Untaken {
    /// The database cannot keep what is in this row, or in one of those behind it, and says why.
    Contents(i64, String),
    Store(StoreError),
}

/// Drains the outbox whenever something lies in it, as long as the store is open.
pub(crate) async fn run(
    news: Arc<News>,
    pool: Pool,
    writer: Writer<PgTables>,
    time: Arc<CallerTime>,
    refused: Arc<RefusedRows>,
) {
    let drainer = Drainer { pool, writer, time, refused };
    let mut pause = SOON;
    // If not now, then with the first sweep.
    let _ = drainer.take_strays().await;
    let _ = drainer.count_refused().await;
    let mut swept = Instant::now();
    let mut outage = Outage::default();
    loop {
        let (drained, now) = (drainer.drain().await, std::time::Instant::now());
        match &drained {
            Ok(_) if outage.works(now).is_some() => tracing::info!("the outbox is drained again"),
            Ok(_) => {}
            Err(StoreError::Closed) => return,
            Err(error) if outage.failed(now).is_some() => {
                tracing::warn!(%error, "the outbox cannot be drained: what is emitted in SQL waits");
            }
            Err(_) => {}
        }
        pause = match drained {
            Ok(0) => (pause * 2).min(SELDOM),
            Ok(_) => SOON,
            Err(_) => SELDOM,
        };
        drainer.refused.log_due();
        if swept.elapsed() >= SWEEP {
            swept = Instant::now();
            if let Err(error) = drainer.sweep().await {
                tracing::debug!(%error, "the outbox could not be swept");
            }
        }
        tokio::select! {
            () = news.outbox.notified() => pause = SOON,
            () = sleep(pause) => {}
        }
    }
}

impl Drainer {
    /// Drains the outbox until nothing is in it and whoever emits next will ring. Answers how many rows there were.
    async fn drain(&self) -> std::result::Result<usize, StoreError> {
        let mut drained = 0;
        loop {
            let Sight { standing, asleep, last, likely } = self.look().await?;
            self.keep_mark(&standing).await?;
            match last {
                Some(last) => drained += self.take(standing.from() + 1..=last, likely).await?,
                None if asleep => return Ok(drained),
                // Whoever looked at the bell before this is found by the next look, if he has committed by then.
                None => self.write(query!("outbox/sleep"), []).await.map(drop)?,
            }
        }
    }

    async fn look(&self) -> std::result::Result<Sight, StoreError> {
        self.pool
            .glance((), |session, ()| {
                Box::pin(async {
                    let rows = session.query(query!("outbox/look", INT8), &[&outbox::MOST]).await?;
                    Sight::of(&rows)
                })
            })
            .await
    }

    /// Takes what stands at these numbers. If the database cannot keep all of it, then row by row, so that only what it
    /// cannot keep is set aside.
    async fn take(
        &self,
        numbers: RangeInclusive<i64>,
        likely: Vec<Emission>,
    ) -> std::result::Result<usize, StoreError> {
        match self.take_some(numbers.clone(), outbox::MOST, likely).await {
            Err(Untaken::Contents(..)) => {}
            Err(Untaken::Store(error)) => return Err(error),
            Ok(taken) => return Ok(taken),
        }
        let mut taken = 0;
        loop {
            taken += match self.take_some(numbers.clone(), 1, vec![]).await {
                Ok(0) => return Ok(taken),
                Ok(one) => one,
                Err(Untaken::Contents(n, reason)) => self.set_aside(n, reason).await?,
                Err(Untaken::Store(error)) => return Err(error),
            };
        }
    }

    async fn take_some(
        &self,
        numbers: RangeInclusive<i64>,
        most: i64,
        likely: Vec<Emission>,
    ) -> std::result::Result<usize, Untaken> {
        let (now, blame) = (self.time.now(), Arc::new(Blame::new()));
        let asked = Asked { place: Place::First, with: (likely, None), foresee: foresee_emissions };
        let blamed = blame.clone();
        let drain = move |txn: &mut Txn<'_, PgTables>, _| outbox::drain(txn, numbers, most, now, &blamed);
        match (self.writer.run_asked(asked, drain).await, blame.get()) {
            (Ok(drained), _) => Ok(self.note(&drained)),
            (Err(_), Some((n, reason))) => Err(Untaken::Contents(*n, reason.clone())),
            (Err(error), None) => Err(Untaken::Store(error)),
        }
    }

    async fn set_aside(&self, n: i64, reason: String) -> std::result::Result<usize, StoreError> {
        let now = self.time.now();
        let drained = self.writer.run(move |txn| outbox::set_aside(txn, n, &reason, now)).await?;
        Ok(self.note(&drained))
    }

    /// Takes rows at numbers where nobody looks, because none was ever given out there.
    async fn take_strays(&self) -> std::result::Result<(), StoreError> {
        let last = self.pool.glance((), |session, ()| {
            Box::pin(async {
                let rows = session.query(query!("outbox/stray"), &[]).await?;
                rows.first().map(|row| get(row, 0)).transpose()
            })
        });
        if let Some(last) = last.await? {
            while self.take(i64::MIN..=last, vec![]).await? > 0 {}
        }
        Ok(())
    }

    async fn keep_mark(&self, standing: &Standing) -> std::result::Result<(), StoreError> {
        match standing.step() {
            Step::Nothing => Ok(()),
            Step::Settle(n) => self.write(query!("outbox/settle", INT8), [n]).await.map(drop),
            Step::Mark => {
                let mark = query!("outbox/mark", INT8, INT8);
                self.write(mark, [standing.settled, standing.last]).await.map(drop)
            }
        }
    }

    /// Removes what is too old, a piece at a time.
    async fn sweep(&self) -> std::result::Result<(), StoreError> {
        self.take_strays().await?;
        for (forget, age) in [
            (query!("outbox/forget_receipts", INT8, INT8), DAY),
            (query!("outbox/forget_keys", INT8, INT8), DAY),
            (query!("outbox/forget_refused", INT8, INT8), MONTH),
        ] {
            while self.write(forget, [age, PIECE]).await? == PIECE.unsigned_abs() {}
        }
        self.count_refused().await
    }

    async fn count_refused(&self) -> std::result::Result<(), StoreError> {
        let counted = self.pool.glance((), |session, ()| {
            Box::pin(async {
                let rows = session.query(query!("outbox/count_refused"), &[]).await?;
                rows.first().map_or(Ok(0), |row| get::<i64>(row, 0))
            })
        });
        self.refused.set_count(counted.await?.unsigned_abs());
        Ok(())
    }

    /// Notes what was set aside; answers how many rows there were.
    fn note(&self, drained: &Drained) -> usize {
        self.refused.add(drained);
        drained.rows
    }

    /// A single statement, in a transaction of its own.
    async fn write<const N: usize>(
        &self,
        query: &'static Query,
        numbers: [i64; N],
    ) -> std::result::Result<u64, StoreError> {
        self.pool
            .glance(numbers, move |session, numbers| {
                Box::pin(async move {
                    let params = numbers.each_ref().map(|number| number as _);
                    Ok(session.execute(query, &params).await?)
                })
            })
            .await
    }
}

impl Sight {
    fn of(rows: &[Row]) -> Result<Self> {
        let mut sight = Self { standing: Standing::default(), asleep: true, last: None, likely: vec![] };
        for row in rows {
            let place: Option<i64> = get(row, 7)?;
            if sight.last.is_none() {
                sight.asleep = get(row, 0)?;
                sight.standing = standing(row, place)?;
            }
            if let Some(place) = place {
                sight.last = Some(place);
                sight.likely.extend(likely(row)?);
            }
        }
        Ok(sight)
    }
}

fn standing(row: &Row, first: Option<i64>) -> Result<Standing> {
    Ok(Standing {
        settled: get(row, 1)?,
        marked: get(row, 2)?,
        xact: get(row, 3)?,
        oldest: get(row, 4)?,
        newest: get(row, 5)?,
        last: get(row, 6)?,
        first,
    })
}

/// What a row will touch: its object and its idempotency key. A row that is not an event touches nothing.
fn likely(row: &Row) -> Result<Option<Emission>> {
    let (kind, tenant): (&str, &str) = (get(row, 8)?, get(row, 9)?);
    let (key, used): (Option<&str>, Option<&str>) = (get(row, 10)?, get(row, 11)?);
    let (Ok(kind), Ok(tenant)) = (HandlingKey::new(kind), Tenant::new(tenant)) else { return Ok(None) };
    let Ok(key) = key.map(ObjectKey::new).transpose() else { return Ok(None) };
    let used = used.filter(|key| outbox::is_idempotency_key(key));
    let idempotency =
        used.map(|key| Idempotency { tenant: tenant.clone(), key: key.into(), digest: Default::default() });
    let event = NewEvent { key, tenant, ..NewEvent::of(kind) };
    Ok(Some(Emission { events: vec![event], idempotency }))
}

#[cfg(test)]
mod tests {
    use pointsman_core::Timestamp;
    use pointsman_testing::shared;

    use super::*;
    use crate::Postgres;

    #[tokio::test]
    async fn what_is_old_is_forgotten() {
        let url = shared().unwrap().create_database().unwrap();
        let store = Postgres::open(&url, Timestamp::from_millis(1_800_000_000_000)).await.unwrap();
        let (pool, writer, time) = (store.pool.clone(), store.writer.clone(), store.time.clone());
        let drainer = Drainer { pool, writer, time, refused: Arc::default() };
        let (server, database) = (shared().unwrap(), url.rsplit('/').next().unwrap());
        let old_and_new = "
            CREATE FUNCTION ago(i bigint) RETURNS bigint LANGUAGE sql AS
                $$ SELECT extract(epoch FROM now() - (i - 0.5) * interval '1 minute')::bigint * 1000000 $$;
            INSERT INTO pointsman.receipt SELECT i, gen_random_uuid(), ago(12001 - i) FROM generate_series(1, 12000) i;
            INSERT INTO pointsman.outbox_key SELECT 'default', i, '', gen_random_uuid(), ago(i)
                FROM generate_series(1, 12000) i;
            INSERT INTO pointsman.outbox_refused (n, type, tenant, value, priority, at, reason, refused_at)
                SELECT i, '', '', '', 0, 0, '', ago(i * 60 * 24) FROM generate_series(1, 60) i";
        server.query(database, old_and_new).unwrap();
        drainer.sweep().await.unwrap();
        for (table, left) in [("receipt", 24 * 60), ("outbox_key", 24 * 60), ("outbox_refused", 30)] {
            let count = server.query(database, &format!("SELECT count(*) FROM pointsman.{table}")).unwrap();
            assert_eq!(count, [[Some(left.to_string())]], "{table}");
        }
    }
}

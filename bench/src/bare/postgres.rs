//! The limit on PostgreSQL: the same rows by plain SQL over one connection, a thousand at a time.
//!
//! ```text
//!   emitted:  INSERT journal + task                ─▶ COMMIT
//!   claimed:  UPDATE task … RETURNING              ─▶ COMMIT
//!   ended:    DELETE task … and INSERT history     ─▶ COMMIT
//! ```
//!
//! Each is one statement and one commit, as somebody would write it who keeps a queue in a table. Objects, counters,
//! lanes, turns and limits cost nothing here.

use std::time::Instant;

use tokio_postgres::{Client, Statement};

use super::Limit;
use crate::rig::{self, payload};

/// So many in each statement.
const BATCH: usize = 1_000;

/// So many rows lie in a slice, as the store cuts them.
const SLICE: i64 = 250_000;

/// What the store tells the planner, too: the tables fill and empty faster than statistics follow.
const SETTINGS: &str =
    "SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
     SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan";

const EMIT: &str = "
    WITH new AS (
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS u (seq, id, key, value)
    ), journaled AS (
        INSERT INTO pointsman.journal (number, id, prev, type, key, tenant, value, depth, first_task, tasks)
        SELECT seq, id, id - 1, $5::text, key, 'default', value, 0, seq, 1 FROM new
    )
    INSERT INTO pointsman.task (seq, queue, event, phase, lane, place, bucket, sync, stage, priority, score, rank, due,
                                attempt, retries, crashes, late, created)
    SELECT seq, 1, id, 3, seq % 10000 * 1048576 + 1, seq, seq % 1024, false, 0, 100, 100000000, seq / 1024, id,
           0, 0, 0, false, id
    FROM new";

const CLAIM: &str = "
    UPDATE pointsman.task t SET phase = 5, attempt = t.attempt + 1, node = 1, fence = t.seq, started = $2
    FROM (
        SELECT seq FROM pointsman.task WHERE phase = 3 AND queue = 1
        ORDER BY queue, score DESC, rank, seq LIMIT $1 FOR UPDATE SKIP LOCKED
    ) AS best
    WHERE t.seq = ANY (ARRAY[best.seq])
    RETURNING t.seq, t.event";

const END: &str = "
    WITH gone AS (DELETE FROM pointsman.task WHERE seq = ANY ($1) RETURNING *)
    INSERT INTO pointsman.history (n, seq, queue, event, type, key, status, sync, stage, priority, attempt, retries,
                                   crashes, late, laned, created, started, finished)
    SELECT seq, seq, queue, event, $2::text, 'object:' || seq % 10000, 0, sync, stage, priority, attempt, retries, crashes,
           late, true, created, started, $3::bigint
    FROM gone";

/// Commits one small row.
const COMMIT: &str =
    "INSERT INTO pointsman.log_kept (era, task, n, time, level, message) VALUES (-1, 1, $1, 0, 0, $2)";

/// One connection, and what is said over it.
pub(crate) struct Plain {
    client: Client,
    emit: Statement,
    claim: Statement,
    end: Statement,
    commit: Statement,
    /// How many events were written so far.
    events: usize,
}

impl Plain {
    pub(super) async fn new(client: Client) -> anyhow::Result<Self> {
        client.batch_execute(SETTINGS).await?;
        let [emit, claim] = [client.prepare(EMIT).await?, client.prepare(CLAIM).await?];
        let [end, commit] = [client.prepare(END).await?, client.prepare(COMMIT).await?];
        Ok(Self { client, emit, claim, end, commit, events: 0 })
    }

    pub(super) async fn emitted(&mut self, events: usize) -> anyhow::Result<Limit> {
        self.make_room(events).await?;
        let start = Instant::now();
        let wanted = self.events + events;
        while self.events < wanted {
            self.emit(BATCH.min(wanted - self.events)).await?;
        }
        let rate = events as f64 / start.elapsed().as_secs_f64();
        let how = format!("plain SQL, journal and task inserted, {BATCH} at a time, one connection");
        Ok(Limit { rate, how })
    }

    pub(super) async fn whole_life(&mut self, events: usize) -> anyhow::Result<Limit> {
        self.make_room(events).await?;
        let start = Instant::now();
        let wanted = self.events + events;
        while self.events < wanted {
            let batch = BATCH.min(wanted - self.events);
            self.emit(batch).await?;
            let claimed = self.claim(batch).await?;
            anyhow::ensure!(claimed.len() == batch, "of {batch} tasks {} were claimed", claimed.len());
            self.end(claimed).await?;
        }
        let rate = events as f64 / start.elapsed().as_secs_f64();
        let how = format!("plain SQL, inserted, claimed and ended, {BATCH} at a time, one connection");
        Ok(Limit { rate, how })
    }

    pub(super) async fn commit(&mut self, n: i64) -> anyhow::Result<f64> {
        let message = payload(n as usize);
        let start = Instant::now();
        self.client.execute(&self.commit, &[&n, &message]).await?;
        Ok(start.elapsed().as_secs_f64() * 1000.0)
    }

    async fn emit(&mut self, count: usize) -> anyhow::Result<()> {
        let numbers = self.events..self.events + count;
        let base = pointsman_engine::now().micros();
        let seqs: Vec<i64> = numbers.clone().map(|n| n as i64 + 1).collect();
        let ids: Vec<i64> = numbers.clone().map(|n| base + n as i64).collect();
        let keys: Vec<String> = numbers.clone().map(|n| format!("object:{}", n % 10_000)).collect();
        let values: Vec<String> = numbers.map(payload).collect();
        self.client.execute(&self.emit, &[&seqs, &ids, &keys, &values, &rig::TYPE]).await?;
        self.events += count;
        Ok(())
    }

    async fn claim(&self, count: usize) -> anyhow::Result<Vec<i64>> {
        let now = pointsman_engine::now().micros();
        let rows = self.client.query(&self.claim, &[&(count as i64), &now]).await?;
        Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
    }

    async fn end(&self, seqs: Vec<i64>) -> anyhow::Result<()> {
        let now = pointsman_engine::now().micros();
        self.client.execute(&self.end, &[&seqs, &rig::TYPE, &now]).await?;
        Ok(())
    }

    /// Makes slices for so many more events, before the clock runs.
    async fn make_room(&self, events: usize) -> anyhow::Result<()> {
        make_slices(&self.client, (self.events + events) as i64, (self.events + events) as i64).await
    }
}

/// Sees to it that there are slices for events and for ended tasks up to these numbers, and that the store knows.
pub(crate) async fn make_slices(client: &Client, events: i64, ended: i64) -> anyhow::Result<()> {
    let row = client.query_one("SELECT journal_to, history_to FROM pointsman.sequencer", &[]).await?;
    let (mut journal_to, mut history_to): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    while journal_to <= events {
        make_slice(client, "journal", journal_to).await?;
        journal_to += SLICE;
    }
    while history_to <= ended {
        for table in ["history", "attempt", "log"] {
            make_slice(client, table, history_to).await?;
        }
        history_to += SLICE;
    }
    let known = "UPDATE pointsman.version SET journal_to = $1, history_to = $2";
    client.execute(known, &[&journal_to, &history_to]).await?;
    Ok(())
}

async fn make_slice(client: &Client, table: &str, from: i64) -> anyhow::Result<()> {
    let sql = "SELECT pointsman.add_slice($1, $2, $3)";
    client.execute(sql, &[&table, &from, &(from + SLICE)]).await?;
    Ok(())
}

//! The baseline on PostgreSQL: the same rows by plain SQL over one connection, a thousand at a time.
//!
//! ```text
//!   emitted:  INSERT journal + task                ─▶ COMMIT
//!   claimed:  UPDATE task … RETURNING              ─▶ COMMIT
//!   ended:    DELETE task … and INSERT history     ─▶ COMMIT
//! ```
//!
//! Each is one statement and one commit, as in a simple queue table. Objects, counters, lanes, fairness and limits are
//! not maintained.

use std::time::Instant;

use tokio_postgres::{Client, Statement};

use super::BaselineResult;
use crate::fixtures::{self, event_payload};

/// The number of tasks that each statement writes.
const TASKS_PER_STATEMENT: usize = 1_000;

/// The number of rows in a partition, as in the store.
const ROWS_PER_PARTITION: i64 = 250_000;

/// The store's own planner settings: the tables fill and empty faster than statistics are updated.
const PLANNER_SETTINGS_SQL: &str =
    "SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
     SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan";

const EMIT_SQL: &str = "
    WITH new AS (
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS u (seq, id, key, value)
    ), journaled AS (
        INSERT INTO pointsman.journal (number, id, prev, type, key, tenant, value, depth, first_task, tasks)
        SELECT seq, id, id - 1, $5::text, key, 'default', value, 0, seq, 1 FROM new
    )
    INSERT INTO pointsman.task (seq, queue, event, phase, lane, lane_position, key_bucket, sync, stage, priority, score,
                                rank, due, attempt, retries, crashes, late, created)
    SELECT seq, 1, id, 3, seq % 10000 * 1048576 + 1, seq, seq % 1024, false, 0, 100, 100000000, seq / 1024, id, 0, 0, 0,
           false, id
    FROM new";

const CLAIM_SQL: &str = "
    UPDATE pointsman.task t SET phase = 5, attempt = t.attempt + 1, node = 1, fence = t.seq, started = $2
    FROM (
        SELECT seq FROM pointsman.task WHERE phase = 3 AND queue = 1
        ORDER BY queue, score DESC, rank, seq LIMIT $1 FOR UPDATE SKIP LOCKED
    ) AS best
    WHERE t.seq = ANY (ARRAY[best.seq])
    RETURNING t.seq, t.event";

const ARCHIVE_SQL: &str = "
    WITH gone AS (DELETE FROM pointsman.task WHERE seq = ANY ($1) RETURNING *)
    INSERT INTO pointsman.history (n, seq, queue, event, type, key, status, sync, stage, priority, attempt, retries,
                                   crashes, late, has_lane, created, started, finished)
    SELECT seq, seq, queue, event, $2::text, 'object:' || seq % 10000, 0, sync, stage, priority, attempt, retries,
           crashes,
           late, true, created, started, $3::bigint
    FROM gone";

/// Commits one small row.
const SMALL_INSERT_SQL: &str =
    "INSERT INTO pointsman.log_retained (partition_key, task, n, time, level, message)
                          VALUES (-1, 1, $1, 0, 0, $2)";

/// One connection with its prepared statements.
pub(crate) struct PostgresBaseline {
    client: Client,
    emit_statement: Statement,
    claim_statement: Statement,
    archive_statement: Statement,
    small_insert_statement: Statement,
    /// The number of events written so far.
    written_event_count: usize,
}

impl PostgresBaseline {
    pub(super) async fn new(client: Client) -> anyhow::Result<Self> {
        client.batch_execute(PLANNER_SETTINGS_SQL).await?;
        let [emit_statement, claim_statement] =
            [client.prepare(EMIT_SQL).await?, client.prepare(CLAIM_SQL).await?];
        let [archive_statement, small_insert_statement] =
            [client.prepare(ARCHIVE_SQL).await?, client.prepare(SMALL_INSERT_SQL).await?];
        Ok(Self {
            client,
            emit_statement,
            claim_statement,
            archive_statement,
            small_insert_statement,
            written_event_count: 0,
        })
    }

    pub(super) async fn measure_emits(&mut self, events: usize) -> anyhow::Result<BaselineResult> {
        self.create_partitions_for_more_events(events).await?;
        let start = Instant::now();
        let target_count = self.written_event_count + events;
        while self.written_event_count < target_count {
            self.insert_events_and_tasks(TASKS_PER_STATEMENT.min(target_count - self.written_event_count))
                .await?;
        }
        let rate = events as f64 / start.elapsed().as_secs_f64();
        let description = format!(
            "plain SQL, journal and task rows inserted, {TASKS_PER_STATEMENT} at a time, one connection"
        );
        Ok(BaselineResult { events_per_second: rate, description })
    }

    pub(super) async fn measure_full_lifecycle(&mut self, events: usize) -> anyhow::Result<BaselineResult> {
        self.create_partitions_for_more_events(events).await?;
        let start = Instant::now();
        let target_count = self.written_event_count + events;
        while self.written_event_count < target_count {
            let batch = TASKS_PER_STATEMENT.min(target_count - self.written_event_count);
            self.insert_events_and_tasks(batch).await?;
            let claimed = self.claim_tasks(batch).await?;
            anyhow::ensure!(claimed.len() == batch, "{} of {batch} tasks were claimed", claimed.len());
            self.archive_tasks(claimed).await?;
        }
        let rate = events as f64 / start.elapsed().as_secs_f64();
        let description = format!(
            "plain SQL, tasks inserted, claimed and ended, {TASKS_PER_STATEMENT} at a time, one connection"
        );
        Ok(BaselineResult { events_per_second: rate, description })
    }

    pub(super) async fn measure_commit_ms(&mut self, n: i64) -> anyhow::Result<f64> {
        let message = event_payload(n as usize);
        let start = Instant::now();
        self.client.execute(&self.small_insert_statement, &[&n, &message]).await?;
        Ok(start.elapsed().as_secs_f64() * 1000.0)
    }

    async fn insert_events_and_tasks(&mut self, count: usize) -> anyhow::Result<()> {
        let numbers = self.written_event_count..self.written_event_count + count;
        let base = pointsman_engine::machine_clock_now().micros();
        let seqs: Vec<i64> = numbers.clone().map(|n| n as i64 + 1).collect();
        let ids: Vec<i64> = numbers.clone().map(|n| base + n as i64).collect();
        let keys: Vec<String> = numbers.clone().map(|n| format!("object:{}", n % 10_000)).collect();
        let values: Vec<String> = numbers.map(event_payload).collect();
        self.client
            .execute(&self.emit_statement, &[&seqs, &ids, &keys, &values, &fixtures::EVENT_TYPE])
            .await?;
        self.written_event_count += count;
        Ok(())
    }

    async fn claim_tasks(&self, count: usize) -> anyhow::Result<Vec<i64>> {
        let now = pointsman_engine::machine_clock_now().micros();
        let rows = self.client.query(&self.claim_statement, &[&(count as i64), &now]).await?;
        Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
    }

    async fn archive_tasks(&self, seqs: Vec<i64>) -> anyhow::Result<()> {
        let now = pointsman_engine::machine_clock_now().micros();
        self.client.execute(&self.archive_statement, &[&seqs, &fixtures::EVENT_TYPE, &now]).await?;
        Ok(())
    }

    /// Creates the partitions for this many more events, before the measurement starts.
    async fn create_partitions_for_more_events(&self, events: usize) -> anyhow::Result<()> {
        create_missing_partitions(
            &self.client,
            (self.written_event_count + events) as i64,
            (self.written_event_count + events) as i64,
        )
        .await
    }
}

/// Creates the missing partitions for events and ended tasks up to these numbers, and records them in the store.
pub(crate) async fn create_missing_partitions(
    client: &Client,
    events: i64,
    ended: i64,
) -> anyhow::Result<()> {
    let row = client.query_one("SELECT journal_end, history_end FROM pointsman.last_commit", &[]).await?;
    let (mut journal_to, mut history_to): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    while journal_to <= events {
        create_partition(client, "journal", journal_to).await?;
        journal_to += ROWS_PER_PARTITION;
    }
    while history_to <= ended {
        for table in ["history", "attempt", "log"] {
            create_partition(client, table, history_to).await?;
        }
        history_to += ROWS_PER_PARTITION;
    }
    let sql = "UPDATE pointsman.commit_version SET journal_end = $1, history_end = $2";
    client.execute(sql, &[&journal_to, &history_to]).await?;
    Ok(())
}

async fn create_partition(client: &Client, table: &str, from: i64) -> anyhow::Result<()> {
    let sql = "SELECT pointsman.add_partition($1, $2, $3)";
    client.execute(sql, &[&table, &from, &(from + ROWS_PER_PARTITION)]).await?;
    Ok(())
}

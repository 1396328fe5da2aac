//! Stores in which many tasks wait, and many have ended.
//!
//! On SQLite and Redis events are journaled, as fast as that goes. On PostgreSQL two go through the store, of which one ends; all
//! others are copies of these two, written by plain SQL, with all that is counted set right.

use anyhow::ensure;
use pointsman_core::{HandlerDef, HandlerName, Tenant};
use tokio_postgres::Client;

use crate::bare;
use crate::claims::{self, Desk};
use crate::ground::{Ground, Opened};

/// What is in a store.
pub(crate) struct Stock<'a> {
    pub(crate) handler: &'a str,
    pub(crate) tenant: &'a Tenant,
    pub(crate) waiting: usize,
    /// How many have ended, and are kept. Only PostgreSQL is filled with such.
    pub(crate) kept: usize,
}

/// Copies of the ended task, numbered after all there are. All of them are of its object.
const KEPT: &str = "
    WITH events AS (
        INSERT INTO pointsman.journal (number, id, prev, type, key, sub, tenant, value, context, cause_event,
                                       cause_task, depth, first_task, tasks)
        SELECT s.journaled + g, s.last_event + g, s.last_event + g - 1, j.type, j.key, j.sub, j.tenant, j.value,
               j.context, j.cause_event, j.cause_task, j.depth, s.tasks + g, 1
        FROM pointsman.sequencer s, pointsman.history h JOIN pointsman.journal j ON j.id = h.event,
             generate_series(1, $1::bigint) g
    ), last AS (
        UPDATE pointsman.object o SET last = s.last_event + $1
        FROM pointsman.sequencer s, pointsman.history h JOIN pointsman.journal j ON j.id = h.event
        WHERE o.tenant = j.tenant AND o.key = j.key
    )
    INSERT INTO pointsman.history (n, seq, queue, event, type, key, status, reason, sync, stage, priority, attempt,
                                   retries, crashes, late, laned, prev_sent, planned, created, started, finished, error,
                                   result)
    SELECT s.archived + g, s.tasks + g, h.queue, s.last_event + g, h.type, h.key, h.status, h.reason, h.sync, h.stage,
           h.priority, h.attempt, h.retries, h.crashes, h.late, h.laned, h.prev_sent, h.planned, h.created, h.started,
           h.finished, h.error, h.result
    FROM pointsman.sequencer s, pointsman.history h, generate_series(1, $1::bigint) g";

/// Copies of the task that waits, each of an object of its own.
const WAITING: &str = "
    WITH events AS (
        INSERT INTO pointsman.journal (number, id, prev, type, key, sub, tenant, value, context, cause_event,
                                       cause_task, depth, first_task, tasks)
        SELECT s.journaled + g, s.last_event + g, NULL, j.type, 'copy:' || g, j.sub, j.tenant, j.value, j.context,
               j.cause_event, j.cause_task, j.depth, s.tasks + g, 1
        FROM pointsman.sequencer s, pointsman.task t JOIN pointsman.journal j ON j.id = t.event,
             generate_series(1, $1::bigint) g
    ), objects AS (
        INSERT INTO pointsman.object (tenant, key, number, last, sent)
        SELECT o.tenant, 'copy:' || g, s.objects + g, s.last_event + g, o.sent
        FROM pointsman.sequencer s, pointsman.task t JOIN pointsman.journal j ON j.id = t.event
             JOIN pointsman.object o ON o.tenant = j.tenant AND o.key = j.key, generate_series(1, $1::bigint) g
    ), counted AS (
        UPDATE pointsman.queue q SET ready = q.ready + $1 FROM pointsman.task t WHERE q.id = t.queue
    )
    INSERT INTO pointsman.task (seq, queue, event, ord, phase, lane, place, crowd, bucket, sync, stage, priority, score,
                                rank, due, attempt, retries, crashes, late, node, fence, until, started, prev_sent,
                                planned, created, reason, error)
    SELECT s.tasks + g, t.queue, s.last_event + g, t.ord, t.phase, (s.objects + g) * 1048576 + t.lane % 1048576,
           s.tasks + g, t.crowd, g % 1024, t.sync, t.stage, t.priority, t.score, t.rank + g / 1024, t.due, t.attempt,
           t.retries, t.crashes, t.late, t.node, t.fence, t.until, t.started, t.prev_sent, t.planned, t.created,
           t.reason, t.error
    FROM pointsman.sequencer s, pointsman.task t, generate_series(1, $1::bigint) g";

/// Every thousandth event is marked.
const MARKS: &str = "
    INSERT INTO pointsman.mark (number, id)
    SELECT s.journaled + g, s.last_event + g FROM pointsman.sequencer s, generate_series(1, $1::bigint) g
    WHERE (s.journaled + g) % 1000 = 0";

/// So many events and tasks more; so many objects; so many that have ended.
const COUNTED: &str = "
    INSERT INTO pointsman.version (version, registry, last_event, forgotten, tasks, fences, objects, orders, journaled,
                                   ended, archived, hidden, dropped, journal_to, history_to, next_due)
    SELECT version + 1, registry + 1, last_event + $1, forgotten, tasks + $1, fences, objects + $2, orders, journaled + $1,
           ended + $3, archived + $3, hidden, dropped, journal_to, history_to, next_due
    FROM pointsman.sequencer";

/// What the queue counts, and what there is.
const CHECK: &str =
    "SELECT q.ready, (SELECT count(*) FROM pointsman.task t WHERE t.queue = q.id AND t.phase = 3)
    FROM pointsman.queue q";

/// A store in which this is. It was closed and opened again, and nothing that filling it has left to the disk becomes a
/// part of what is measured.
pub(crate) async fn filled(ground: &Ground, name: &str, stock: Stock<'_>) -> anyhow::Result<Opened> {
    let Stock { handler, tenant, waiting, kept } = stock;
    let opened = ground.open(name).await?;
    let desk = Desk::new(opened.store, vec![HandlerDef::new(HandlerName::new(handler)?)]).await?;
    let event = |n: usize| claims::event(handler, tenant, n);
    match ground {
        Ground::Sqlite(_) | Ground::Redis(_) => {
            claims::fill(desk.store(), (0..waiting).map(event)).await?;
            desk.close().await?;
        }
        Ground::Postgres(databases) => {
            claims::fill(desk.store(), [event(0)]).await?;
            desk.drain().await?;
            claims::fill(desk.store(), [event(1)]).await?;
            desk.close().await?;
            copy(&databases.connect(name).await?, kept as i64, waiting.saturating_sub(1) as i64).await?;
        }
    }
    ground.settle(name).await?;
    ground.open(name).await
}

/// Copies the task that has ended and the one that waits, so many times each.
async fn copy(client: &Client, kept: i64, waiting: i64) -> anyhow::Result<()> {
    let row = client.query_one("SELECT journaled, archived FROM pointsman.sequencer", &[]).await?;
    let (journaled, archived): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    bare::make_slices(client, journaled + kept + waiting, archived + kept).await?;
    for (copies, count, objects, ended) in [(KEPT, kept, 0, kept), (WAITING, waiting, waiting, 0)] {
        if count == 0 {
            continue;
        }
        client.execute(copies, &[&count]).await?;
        client.execute(MARKS, &[&count]).await?;
        client.execute(COUNTED, &[&count, &objects, &ended]).await?;
    }
    for row in client.query(CHECK, &[]).await? {
        let (counted, found): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        ensure!(counted == found, "a queue counts {counted} tasks that are ready, and there are {found}");
    }
    Ok(())
}

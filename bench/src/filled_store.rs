//! Stores that are filled with many waiting and archived tasks.
//!
//! On SQLite and Redis all events are appended to the store. On PostgreSQL only two events are appended, and the task of
//! the first is finished; the other rows are copies of these two, written by plain SQL, and all counters are updated.

use anyhow::ensure;
use pointsman_core::{HandlerDef, HandlerName, Tenant};
use tokio_postgres::Client;

use crate::baseline;
use crate::claiming_node::{self, ClaimingNode};
use crate::stores::{OpenedStore, StoreFactory};

/// The tasks that a store is filled with.
pub(crate) struct StoreContents<'a> {
    pub(crate) handler_name: &'a str,
    pub(crate) tenant: &'a Tenant,
    pub(crate) waiting_task_count: usize,
    /// The number of ended tasks in the history. Only PostgreSQL is filled with them.
    pub(crate) archived_task_count: usize,
}

/// Inserts copies of the ended task, numbered after all existing ones. All of them belong to its object.
const COPY_ARCHIVED_TASK_SQL: &str = "
    WITH events AS (
        INSERT INTO pointsman.journal (number, id, prev, type, key, sub, tenant, value, context, cause_event,
                                       cause_task, depth, first_task, tasks)
        SELECT s.journaled_events + g, s.last_event + g, s.last_event + g - 1, j.type, j.key, j.sub, j.tenant, j.value,
               j.context, j.cause_event, j.cause_task, j.depth, s.last_task + g, 1
        FROM pointsman.last_commit s, pointsman.history h JOIN pointsman.journal j ON j.id = h.event,
             generate_series(1, $1::bigint) g
    ), last AS (
        UPDATE pointsman.object o SET last_event = s.last_event + $1
        FROM pointsman.last_commit s, pointsman.history h JOIN pointsman.journal j ON j.id = h.event
        WHERE o.tenant = j.tenant AND o.key = j.key
    )
    INSERT INTO pointsman.history (n, seq, queue, event, type, key, status, reason, sync, stage, priority, attempt,
                                   retries, crashes, late, has_lane, prev_sent, planned, created, started, finished,
                                   error, result)
    SELECT s.last_archive_number + g, s.last_task + g, h.queue, s.last_event + g, h.type, h.key, h.status, h.reason,
           h.sync, h.stage, h.priority, h.attempt, h.retries, h.crashes, h.late, h.has_lane, h.prev_sent, h.planned,
           h.created, h.started, h.finished, h.error, h.result
    FROM pointsman.last_commit s, pointsman.history h, generate_series(1, $1::bigint) g";

/// Inserts copies of the waiting task, each with its own object.
const COPY_WAITING_TASK_SQL: &str = "
    WITH events AS (
        INSERT INTO pointsman.journal (number, id, prev, type, key, sub, tenant, value, context, cause_event,
                                       cause_task, depth, first_task, tasks)
        SELECT s.journaled_events + g, s.last_event + g, NULL, j.type, 'copy:' || g, j.sub, j.tenant, j.value, j.context,
               j.cause_event, j.cause_task, j.depth, s.last_task + g, 1
        FROM pointsman.last_commit s, pointsman.task t JOIN pointsman.journal j ON j.id = t.event,
             generate_series(1, $1::bigint) g
    ), objects AS (
        INSERT INTO pointsman.object (tenant, key, number, last_event, last_sent)
        SELECT o.tenant, 'copy:' || g, s.last_object + g, s.last_event + g, o.last_sent
        FROM pointsman.last_commit s, pointsman.task t JOIN pointsman.journal j ON j.id = t.event
             JOIN pointsman.object o ON o.tenant = j.tenant AND o.key = j.key, generate_series(1, $1::bigint) g
    ), counted AS (
        UPDATE pointsman.queue q SET ready = q.ready + $1 FROM pointsman.task t WHERE q.id = t.queue
    )
    INSERT INTO pointsman.task (seq, queue, event, order_number, phase, lane, lane_position, concurrency_group,
                                key_bucket, sync, stage, priority, score, rank, due, attempt, retries, crashes, late,
                                node, fence, leased_until, started, prev_sent, planned, created, reason, error)
    SELECT s.last_task + g, t.queue, s.last_event + g, t.order_number, t.phase,
           (s.last_object + g) * 1048576 + t.lane % 1048576,
           s.last_task + g, t.concurrency_group, g % 1024, t.sync, t.stage, t.priority, t.score, t.rank + g / 1024,
           t.due, t.attempt,
           t.retries, t.crashes, t.late, t.node, t.fence, t.leased_until, t.started, t.prev_sent, t.planned, t.created,
           t.reason, t.error
    FROM pointsman.last_commit s, pointsman.task t, generate_series(1, $1::bigint) g";

/// Inserts every thousandth event into the sparse index of the journal.
const INSERT_SPARSE_INDEX_SQL: &str = "
    INSERT INTO pointsman.journal_sparse_index (number, id)
    SELECT s.journaled_events + g, s.last_event + g FROM pointsman.last_commit s, generate_series(1, $1::bigint) g
    WHERE (s.journaled_events + g) % 1000 = 0";

/// Adds the numbers of new events and tasks, of new objects, and of ended tasks to the counters.
const UPDATE_COUNTERS_SQL: &str = "
    INSERT INTO pointsman.commit_version (version, registry_version, last_event, expired_up_to, last_task, last_fence,
                                          last_object, last_order, journaled_events, archived_tasks,
                                          last_archive_number, expired_archive_number, expired_event_number,
                                          journal_end, history_end, next_due)
    SELECT version + 1, registry_version + 1, last_event + $1, expired_up_to, last_task + $1, last_fence,
           last_object + $2, last_order, journaled_events + $1, archived_tasks + $3, last_archive_number + $3,
           expired_archive_number, expired_event_number, journal_end, history_end, next_due
    FROM pointsman.last_commit";

/// Reads each queue's counter of ready tasks, and the number of its ready tasks.
const READ_READY_TASK_COUNTS_SQL: &str =
    "SELECT q.ready, (SELECT count(*) FROM pointsman.task t WHERE t.queue = q.id AND t.phase = 3)
    FROM pointsman.queue q";

/// Creates a store with these contents. It is flushed, closed and opened again, so that writes from filling it do not
/// disturb the measurement.
pub(crate) async fn create_filled_store(
    stores: &StoreFactory,
    name: &str,
    contents: StoreContents<'_>,
) -> anyhow::Result<OpenedStore> {
    let StoreContents {
        handler_name: handler,
        tenant,
        waiting_task_count: waiting,
        archived_task_count: archived,
    } = contents;
    let opened = stores.open_store(name).await?;
    let node =
        ClaimingNode::register_and_join(opened.store, vec![HandlerDef::new(HandlerName::new(handler)?)])
            .await?;
    let event = |n: usize| claiming_node::new_event_for_handler(handler, tenant, n);
    match stores {
        StoreFactory::Sqlite(_) | StoreFactory::Redis(_) => {
            claiming_node::append_events(node.store(), (0..waiting).map(event)).await?;
            node.leave_and_close_store().await?;
        }
        StoreFactory::Postgres(databases) => {
            claiming_node::append_events(node.store(), [event(0)]).await?;
            node.claim_and_finish_all_ready_tasks().await?;
            claiming_node::append_events(node.store(), [event(1)]).await?;
            node.leave_and_close_store().await?;
            insert_task_copies(
                &databases.connect(name).await?,
                archived as i64,
                waiting.saturating_sub(1) as i64,
            )
            .await?;
        }
    }
    stores.flush_to_disk(name).await?;
    stores.open_store(name).await
}

/// Copies the ended and the waiting task this many times each.
async fn insert_task_copies(
    client: &Client,
    archived_copies: i64,
    waiting_copies: i64,
) -> anyhow::Result<()> {
    let row = client
        .query_one("SELECT journaled_events, last_archive_number FROM pointsman.last_commit", &[])
        .await?;
    let (journaled, archived): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    baseline::create_missing_partitions(
        client,
        journaled + archived_copies + waiting_copies,
        archived + archived_copies,
    )
    .await?;
    for (copies, count, objects, ended) in [
        (COPY_ARCHIVED_TASK_SQL, archived_copies, 0, archived_copies),
        (COPY_WAITING_TASK_SQL, waiting_copies, waiting_copies, 0),
    ] {
        if count == 0 {
            continue;
        }
        client.execute(copies, &[&count]).await?;
        client.execute(INSERT_SPARSE_INDEX_SQL, &[&count]).await?;
        client.execute(UPDATE_COUNTERS_SQL, &[&count, &objects, &ended]).await?;
    }
    for row in client.query(READ_READY_TASK_COUNTS_SQL, &[]).await? {
        let (counted, found): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        ensure!(counted == found, "a queue's counter says {counted} ready tasks, but there are {found}");
    }
    Ok(())
}

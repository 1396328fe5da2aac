-- Each commit inserts a row with its counters, and the write lock is the lock on a row that never changes.

-- Waits for nodes that still write by the older layout, and stops them: the copied counters are the last they wrote.
LOCK TABLE pointsman.counters IN ACCESS EXCLUSIVE MODE;

CREATE TABLE pointsman.write_lock (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton)
);
INSERT INTO pointsman.write_lock DEFAULT VALUES;

CREATE TABLE pointsman.commit_version (
    version                bigint   PRIMARY KEY,
    nonce                  bigint   NOT NULL DEFAULT 0,
    registry_version       bigint   NOT NULL DEFAULT 0,
    invalidations          bigint[],
    object_invalidations   bytea,
    last_event             bigint   NOT NULL DEFAULT 0,
    expired_up_to          bigint   NOT NULL DEFAULT 0,
    last_task              bigint   NOT NULL DEFAULT 0,
    last_fence             bigint   NOT NULL DEFAULT 0,
    last_object            bigint   NOT NULL DEFAULT 0,
    last_order             bigint   NOT NULL DEFAULT 0,
    journaled_events       bigint   NOT NULL DEFAULT 0,
    archived_tasks         bigint   NOT NULL DEFAULT 0,
    last_archive_number    bigint   NOT NULL DEFAULT 0,
    expired_archive_number bigint   NOT NULL DEFAULT 0,
    expired_event_number   bigint   NOT NULL DEFAULT 0,
    journal_end            bigint   NOT NULL DEFAULT 0,
    history_end            bigint   NOT NULL DEFAULT 0,
    next_due               bigint
) WITH (vacuum_truncate = off, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE pointsman.commit_version
    ALTER COLUMN invalidations SET STORAGE PLAIN,
    ALTER COLUMN object_invalidations SET STORAGE PLAIN;
INSERT INTO pointsman.commit_version
SELECT version, 0, registry_version, NULL, NULL, last_event, expired_up_to, last_task, last_fence, last_object,
       last_order, journaled_events, archived_tasks,
       last_archive_number, expired_archive_number, expired_event_number, journal_end, history_end, next_due
FROM pointsman.counters;
DROP TABLE pointsman.counters;
CREATE VIEW pointsman.last_commit AS SELECT * FROM pointsman.commit_version ORDER BY version DESC LIMIT 1;

ALTER TABLE pointsman.object ALTER COLUMN tenant TYPE text COLLATE "C", ALTER COLUMN key TYPE text COLLATE "C";
ALTER TABLE pointsman.idempotency_record ALTER COLUMN tenant TYPE text COLLATE "C",
    ALTER COLUMN key TYPE text COLLATE "C";

CREATE VIEW pointsman.events AS
WITH tasks AS (
    SELECT t.seq, t.queue, t.event, t.order_number, t.retries, t.due, t.created, t.started AS processed, t.node,
           t.planned,
           (CASE t.phase WHEN 4 THEN 'scheduled' WHEN 5 THEN 'locked' WHEN 6 THEN 'error' WHEN 7 THEN 'missing'
                         ELSE 'new' END)::pointsman.queue_status AS status
    FROM pointsman.task t
    UNION ALL
    SELECT h.seq, h.queue, h.event, NULL, h.retries, h.created, h.created, h.finished, NULL, h.planned,
           (CASE h.status WHEN 0 THEN 'done' ELSE 'error' END)::pointsman.queue_status
    FROM pointsman.history h
    WHERE h.n > (SELECT expired_archive_number FROM pointsman.last_commit)
)
SELECT t.seq AS id,
       t.status,
       t.node::integer AS dequeued_by,
       q.canvas_id,
       q.canvas_id AS account_id,
       CASE WHEN q.collection LIKE '/%' THEN 'ORDER' WHEN q.collection <> '' THEN 'SYNC'
            WHEN t.planned IS NOT NULL THEN 'CRON' ELSE 'WORKER' END AS space,
       h.name,
       coalesce((SELECT j.value FROM pointsman.journal j WHERE j.id = t.event),
                (SELECT o.value FROM pointsman.orders o WHERE o.n = t.order_number), 'null') AS value,
       t.retries::integer AS retries,
       pointsman.micros_to_timestamp(t.due) AS delay_until,
       coalesce((SELECT s.expression FROM pointsman.fire f JOIN pointsman.schedule s ON s.name = f.schedule
                 WHERE t.planned IS NOT NULL AND f.event = t.event LIMIT 1), '_') AS modifier,
       pointsman.micros_to_timestamp(t.created) AS enqueued_at,
       pointsman.micros_to_timestamp(t.processed) AS last_processed_at
FROM tasks t
JOIN pointsman.queue q ON q.id = t.queue
JOIN pointsman.handler h ON h.id = q.handler;

-- The objects belong to the owner of the schema like the others, whichever role applies this migration.
DO $$
DECLARE
    owner name := (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'pointsman');
BEGIN
    EXECUTE format('ALTER TABLE pointsman.write_lock OWNER TO %I', owner);
    EXECUTE format('ALTER TABLE pointsman.commit_version OWNER TO %I', owner);
    EXECUTE format('ALTER VIEW pointsman.last_commit OWNER TO %I', owner);
    EXECUTE format('ALTER VIEW pointsman.events OWNER TO %I', owner);
END $$;

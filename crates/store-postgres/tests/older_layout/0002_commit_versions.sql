-- Each commit inserts a row with its counters, and the write lock is the lock on a row that never changes.

-- Waits for nodes that still write by the older layout, and stops them: the copied counters are the last they wrote.
LOCK TABLE pointsman.sequencer IN ACCESS EXCLUSIVE MODE;

CREATE TABLE pointsman.turn (
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);
INSERT INTO pointsman.turn DEFAULT VALUES;

CREATE TABLE pointsman.version (
    version    bigint   PRIMARY KEY,
    mark       bigint   NOT NULL DEFAULT 0,
    registry   bigint   NOT NULL DEFAULT 0,
    changes    bigint[],
    touched    bytea,
    last_event bigint   NOT NULL DEFAULT 0,
    forgotten  bigint   NOT NULL DEFAULT 0,
    tasks      bigint   NOT NULL DEFAULT 0,
    fences     bigint   NOT NULL DEFAULT 0,
    objects    bigint   NOT NULL DEFAULT 0,
    orders     bigint   NOT NULL DEFAULT 0,
    journaled  bigint   NOT NULL DEFAULT 0,
    ended      bigint   NOT NULL DEFAULT 0,
    archived   bigint   NOT NULL DEFAULT 0,
    hidden     bigint   NOT NULL DEFAULT 0,
    dropped    bigint   NOT NULL DEFAULT 0,
    journal_to bigint   NOT NULL DEFAULT 0,
    history_to bigint   NOT NULL DEFAULT 0,
    next_due   bigint
) WITH (vacuum_truncate = off, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE pointsman.version ALTER COLUMN changes SET STORAGE PLAIN, ALTER COLUMN touched SET STORAGE PLAIN;
INSERT INTO pointsman.version
SELECT version, 0, registry, NULL, NULL, last_event, forgotten, tasks, fences, objects, orders, journaled, ended,
       archived, hidden, dropped, journal_to, history_to, next_due
FROM pointsman.sequencer;
DROP TABLE pointsman.sequencer;
CREATE VIEW pointsman.sequencer AS SELECT * FROM pointsman.version ORDER BY version DESC LIMIT 1;

ALTER TABLE pointsman.object ALTER COLUMN tenant TYPE text COLLATE "C", ALTER COLUMN key TYPE text COLLATE "C";
ALTER TABLE pointsman.idempotency ALTER COLUMN tenant TYPE text COLLATE "C", ALTER COLUMN key TYPE text COLLATE "C";

CREATE VIEW pointsman.events AS
WITH tasks AS (
    SELECT t.seq, t.queue, t.event, t.ord, t.retries, t.due, t.created, t.started AS processed, t.node, t.planned,
           (CASE t.phase WHEN 4 THEN 'scheduled' WHEN 5 THEN 'locked' WHEN 6 THEN 'error' WHEN 7 THEN 'missing'
                         ELSE 'new' END)::pointsman.queue_status AS status
    FROM pointsman.task t
    UNION ALL
    SELECT h.seq, h.queue, h.event, NULL, h.retries, h.created, h.created, h.finished, NULL, h.planned,
           (CASE h.status WHEN 0 THEN 'done' ELSE 'error' END)::pointsman.queue_status
    FROM pointsman.history h
    WHERE h.n > (SELECT hidden FROM pointsman.sequencer)
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
                (SELECT o.value FROM pointsman.orders o WHERE o.n = t.ord), 'null') AS value,
       t.retries::integer AS retries,
       pointsman.at(t.due) AS delay_until,
       coalesce((SELECT s.expression FROM pointsman.fire f JOIN pointsman.schedule s ON s.name = f.schedule
                 WHERE t.planned IS NOT NULL AND f.event = t.event LIMIT 1), '_') AS modifier,
       pointsman.at(t.created) AS enqueued_at,
       pointsman.at(t.processed) AS last_processed_at
FROM tasks t
JOIN pointsman.queue q ON q.id = t.queue
JOIN pointsman.handler h ON h.id = q.handler;

-- The objects belong to the owner of the schema like the others, whichever role applies this migration.
DO $$
DECLARE
    owner name := (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'pointsman');
BEGIN
    EXECUTE format('ALTER TABLE pointsman.turn OWNER TO %I', owner);
    EXECUTE format('ALTER TABLE pointsman.version OWNER TO %I', owner);
    EXECUTE format('ALTER VIEW pointsman.sequencer OWNER TO %I', owner);
    EXECUTE format('ALTER VIEW pointsman.events OWNER TO %I', owner);
END $$;

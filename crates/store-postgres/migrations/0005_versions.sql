-- Each commit leaves a row that tells how far everything has come, and the right to write is the lock on a row that never
-- changes. While somebody holds an old snapshot (a dump), dead rows cannot be removed: with one row that every commit
-- writes anew, every commit would pass over all of them, but the newest of many is found by its index at once.

-- Whoever still writes by the older layout is waited for, and comes no further: what is copied is the last that it wrote.
LOCK TABLE pointsman.sequencer IN ACCESS EXCLUSIVE MODE;

CREATE TABLE pointsman.turn (
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);
INSERT INTO pointsman.turn DEFAULT VALUES;

-- The last commits. `changes` tells what each has changed that others may remember otherwise: 4 × number + 0 for a queue,
-- + 1 for a handler's pace, + 2 for a task, and 3 for all queues. It is NULL if that was too much to tell. `touched` tells
-- of which objects anything was written, and what they are like now; NULL if nobody knows.
CREATE TABLE pointsman.version (
    version    bigint   PRIMARY KEY,        -- counts commits
    mark       bigint   NOT NULL DEFAULT 0, -- tells this commit from another that has the same number in a lost history
    registry   bigint   NOT NULL DEFAULT 0, -- counts changes of handlers, chains, rules and nodes
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
    archived   bigint   NOT NULL DEFAULT 0, -- how many tasks ever ended
    hidden     bigint   NOT NULL DEFAULT 0, -- of these, the history up to here is forgotten
    dropped    bigint   NOT NULL DEFAULT 0, -- the number of the last event that is forgotten
    journal_to bigint   NOT NULL DEFAULT 0, -- up to where there are slices of the journal
    history_to bigint   NOT NULL DEFAULT 0, -- and of history, attempts and logs
    next_due   bigint                       -- not later than the earliest due time of a delayed task
) WITH (vacuum_truncate = off, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE pointsman.version ALTER COLUMN changes SET STORAGE PLAIN, ALTER COLUMN touched SET STORAGE PLAIN;
INSERT INTO pointsman.version
SELECT version, 0, registry, NULL, NULL, last_event, forgotten, tasks, fences, objects, orders, journaled, ended, archived, hidden,
       dropped, journal_to, history_to, next_due
FROM pointsman.sequencer;

-- Names are only ever looked up, and compared by their bytes: in any other order that takes longer, and depends on the
-- machine.
ALTER TABLE pointsman.object ALTER COLUMN tenant TYPE text COLLATE "C", ALTER COLUMN key TYPE text COLLATE "C";
ALTER TABLE pointsman.idempotency ALTER COLUMN tenant TYPE text COLLATE "C", ALTER COLUMN key TYPE text COLLATE "C";
ALTER TABLE pointsman.outbox_key ALTER COLUMN tenant TYPE text COLLATE "C", ALTER COLUMN key TYPE text COLLATE "C";

-- How far everything has come.
ALTER TABLE pointsman.sequencer RENAME TO sequencer_before;
CREATE VIEW pointsman.sequencer AS SELECT * FROM pointsman.version ORDER BY version DESC LIMIT 1;

-- As it was, but for where it looks up what is hidden.
CREATE OR REPLACE VIEW pointsman.events AS
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
DROP TABLE pointsman.sequencer_before;

-- They are the owner's like the rest, whoever brings the schema forward: what the view shows is read in its owner's name.
DO $$
DECLARE
    owner name := (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'pointsman');
BEGIN
    EXECUTE format('ALTER TABLE pointsman.turn OWNER TO %I', owner);
    EXECUTE format('ALTER TABLE pointsman.version OWNER TO %I', owner);
    EXECUTE format('ALTER VIEW pointsman.sequencer OWNER TO %I', owner);
END $$;

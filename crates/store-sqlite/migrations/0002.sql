-- Work: sources, limits, fairness among keys, leases of workers, schedules, replays, the audit log.

-- A queue of a source belongs to one collection. The state of the round robin between queues is in memory only.
CREATE TABLE pointsman_queue_2 (
    id         INTEGER PRIMARY KEY,
    handler    INTEGER NOT NULL,
    tenant     TEXT NOT NULL,
    collection TEXT NOT NULL, -- empty: the queue of a handler of events
    ready      INTEGER NOT NULL,
    waiting    INTEGER NOT NULL,
    scheduled  INTEGER NOT NULL,
    running    INTEGER NOT NULL,
    halted     INTEGER NOT NULL,
    missing    INTEGER NOT NULL,
    UNIQUE (handler, tenant, collection)
);
INSERT INTO pointsman_queue_2
SELECT id, handler, tenant, '', ready, waiting, scheduled, running, halted, missing FROM pointsman_queue;
DROP TABLE pointsman_queue;
ALTER TABLE pointsman_queue_2 RENAME TO pointsman_queue;

-- A source's task has no event. `lane` is the lane of a task, `place` its position there: NULL if it has none. `crowd`
-- is the per-key concurrency group of an unordered task. Within a queue, ready tasks are ordered by score (priority,
-- aged), then by rank (a round robin over keys, `bucket`), then by age.
CREATE TABLE pointsman_task_2 (
    seq       INTEGER PRIMARY KEY,
    queue     INTEGER NOT NULL,
    event     INTEGER,
    phase     INTEGER NOT NULL,
    lane      INTEGER,
    place     INTEGER,
    crowd     INTEGER,
    bucket    INTEGER,
    sync      INTEGER NOT NULL,
    stage     INTEGER NOT NULL,
    priority  INTEGER NOT NULL,
    score     INTEGER NOT NULL,
    rank      INTEGER NOT NULL,
    due       INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    retries   INTEGER NOT NULL,
    crashes   INTEGER NOT NULL,
    late      INTEGER NOT NULL,
    node      INTEGER,
    fence     INTEGER,
    until     INTEGER,
    started   INTEGER,
    prev_sent INTEGER,
    planned   INTEGER,
    created   INTEGER NOT NULL,
    reason    INTEGER,
    error     TEXT
);
INSERT INTO pointsman_task_2
SELECT seq, queue, event, phase, lane, iif(lane IS NULL, NULL, seq), NULL, NULL, sync, stage, priority,
       priority * 1000000, 0, due, attempt, retries, crashes, late, node, fence, NULL, started, prev_sent, NULL,
       created, reason, error
FROM pointsman_task;
DROP TABLE pointsman_task;
ALTER TABLE pointsman_task_2 RENAME TO pointsman_task;
CREATE INDEX pointsman_task_ready ON pointsman_task (queue, score DESC, rank, seq, bucket) WHERE phase = 3;
CREATE INDEX pointsman_task_due ON pointsman_task (due) WHERE phase = 2;
CREATE INDEX pointsman_task_gate ON pointsman_task (event, stage) WHERE phase = 1;
CREATE INDEX pointsman_task_lane ON pointsman_task (lane, place) WHERE place IS NOT NULL;
CREATE INDEX pointsman_task_crowd ON pointsman_task (crowd, phase, seq) WHERE crowd IS NOT NULL;
-- One index for each phase: SQLite does not use an index on `phase IN (4, 5)` for a query of only one of them.
CREATE INDEX pointsman_task_scheduled ON pointsman_task (score DESC, rank, seq) WHERE phase = 4;
CREATE INDEX pointsman_task_running ON pointsman_task (node) WHERE phase = 5;
CREATE INDEX pointsman_task_leased ON pointsman_task (until) WHERE until IS NOT NULL;
CREATE INDEX pointsman_task_missing ON pointsman_task (queue, seq) WHERE phase = 7;
CREATE INDEX pointsman_task_parked ON pointsman_task (seq) WHERE phase >= 6;
CREATE INDEX pointsman_task_late ON pointsman_task (event) WHERE late = 1;

CREATE TABLE pointsman_history_2 (
    seq       INTEGER PRIMARY KEY,
    queue     INTEGER NOT NULL,
    event     INTEGER,
    type      TEXT NOT NULL,
    key       TEXT,
    status    INTEGER NOT NULL,
    reason    INTEGER,
    sync      INTEGER NOT NULL,
    stage     INTEGER NOT NULL,
    priority  INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    retries   INTEGER NOT NULL,
    crashes   INTEGER NOT NULL,
    late      INTEGER NOT NULL,
    laned     INTEGER NOT NULL,
    prev_sent INTEGER,
    planned   INTEGER,
    created   INTEGER NOT NULL,
    started   INTEGER,
    finished  INTEGER NOT NULL,
    error     TEXT,
    result    TEXT
);
INSERT INTO pointsman_history_2
SELECT seq, queue, event, type, key, status, reason, sync, stage, priority, attempt, retries, crashes, late,
       key IS NOT NULL, prev_sent, NULL, created, started, finished, error, result
FROM pointsman_history;
DROP TABLE pointsman_history;
ALTER TABLE pointsman_history_2 RENAME TO pointsman_history;
-- People search for failures and runs of sources among a million successes.
CREATE INDEX pointsman_history_failed ON pointsman_history (seq) WHERE status = 1;
CREATE INDEX pointsman_history_late ON pointsman_history (event) WHERE late = 1;
CREATE INDEX pointsman_history_runs ON pointsman_history (seq) WHERE event IS NULL;

-- `pace`: the state of a handler's rate limit and circuit breaker (see the core's `limit`). `gaps`: the ranges of the
-- journal in which the handler was not defined and received no events (see replay.rs).
ALTER TABLE pointsman_handler ADD COLUMN pace TEXT NOT NULL DEFAULT '';
ALTER TABLE pointsman_handler ADD COLUMN gaps TEXT NOT NULL DEFAULT '[]';
UPDATE pointsman_handler
SET gaps = '[[' || (1 + (SELECT coalesce(max(id), 0) FROM pointsman_journal)) || ',null]]' WHERE NOT defined;

ALTER TABLE pointsman_node ADD COLUMN abilities TEXT NOT NULL DEFAULT '';

CREATE TABLE pointsman_rule_2 (
    kind   TEXT NOT NULL,
    space  TEXT NOT NULL, -- handler, collection or schedule
    name   TEXT NOT NULL,
    tenant TEXT NOT NULL, -- empty: all tenants
    by     TEXT NOT NULL,
    reason TEXT NOT NULL,
    since  INTEGER NOT NULL,
    PRIMARY KEY (kind, space, name, tenant)
) WITHOUT ROWID;
INSERT INTO pointsman_rule_2 SELECT kind, 'handler', handler, tenant, by, reason, since FROM pointsman_rule;
DROP TABLE pointsman_rule;
ALTER TABLE pointsman_rule_2 RENAME TO pointsman_rule;

-- The state of each schedule, and its last event.
CREATE TABLE pointsman_schedule (
    name       TEXT PRIMARY KEY,
    expression TEXT NOT NULL,
    settled    INTEGER NOT NULL,
    unmet      INTEGER,
    last_event INTEGER
) WITHOUT ROWID;

-- The fire ledger: one row for each planned time. `n` ascends with the time of writing, so that retention finds the
-- oldest rows.
CREATE TABLE pointsman_fire (
    n        INTEGER PRIMARY KEY,
    schedule TEXT NOT NULL,
    planned  INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    outcome  TEXT NOT NULL,
    event    INTEGER,
    task     TEXT,
    UNIQUE (schedule, planned)
);

-- The audit log.
CREATE TABLE pointsman_deed (
    n      INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    by     TEXT NOT NULL,
    action TEXT NOT NULL,
    what   TEXT NOT NULL,
    detail TEXT NOT NULL
);

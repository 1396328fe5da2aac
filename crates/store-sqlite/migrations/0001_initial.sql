-- The layout of the embedded store.
--
-- Tables that only grow (journal, history, logs) are append-only. The table that changes (task) is small and contains
-- unfinished tasks only: an ended task moves to the history. No payload is stored twice: a task points to its event.
-- Times are microseconds since 1970. Names carry a prefix because a program may keep its own tables in the same file
-- (see unit_of_work.rs).

-- Named texts; and, as numbers, the version of the layout and counters.
CREATE TABLE pointsman_meta (
    name TEXT PRIMARY KEY,
    text NOT NULL
) WITHOUT ROWID;

-- Events in the order of their ids. The tasks of an event have consecutive numbers from first_task on, so that
-- no index is needed to find them.
CREATE TABLE pointsman_journal (
    id          INTEGER PRIMARY KEY,
    prev        INTEGER, -- the previous event of the same object
    type        TEXT NOT NULL,
    key         TEXT,
    sub         TEXT, -- the key of a part of the object
    tenant      TEXT NOT NULL,
    value       TEXT NOT NULL,
    context     TEXT,
    cause_event INTEGER, -- the event whose task emitted this one
    cause_task  INTEGER, -- the task that emitted this event
    depth       INTEGER NOT NULL, -- the length of the chain of causes before this event
    first_task  INTEGER NOT NULL,
    tasks       INTEGER NOT NULL -- the number of its tasks
);
CREATE INDEX pointsman_journal_cause ON pointsman_journal (cause_event) WHERE cause_event IS NOT NULL;

-- Every thousandth event with its consecutive number, so that an event is found by its number without counting.
CREATE TABLE pointsman_journal_sparse_index (
    number INTEGER PRIMARY KEY,
    id     INTEGER NOT NULL
);

-- The last event of each object, and, for each handler, the last one that was sent to it. Outlives the journal. The
-- numbers of lanes derive from the numbers of objects (see objects.rs and lanes.rs in crates/store/src).
CREATE TABLE pointsman_object (
    tenant     TEXT NOT NULL,
    key        TEXT NOT NULL,
    last_event INTEGER NOT NULL,
    last_sent  BLOB NOT NULL,
    number     INTEGER NOT NULL DEFAULT 0,
    checked    INTEGER NOT NULL DEFAULT 0, -- when retention last found it in use, as an event id; 0: never
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX pointsman_object_retention_check ON pointsman_object (checked);

CREATE TABLE pointsman_handler (
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    def           TEXT NOT NULL,
    defined       INTEGER NOT NULL, -- 1 while a registrant defines it
    limiter_state TEXT NOT NULL DEFAULT '',  -- of its rate limiter and circuit breaker (see crates/core/src/limit.rs)
    -- The ranges of the journal in which it was not defined and received no events.
    gaps          TEXT NOT NULL DEFAULT '[]'
);

-- A queue for each handler and tenant; for sources and chains also for each collection or chain node. The state of the
-- round robin between queues is in memory only.
CREATE TABLE pointsman_queue (
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

-- Unfinished tasks. `phase` says what a task waits for (see phase.rs in crates/store/src). Each partial index contains
-- only the tasks of its phases, so that a search for work never scans tasks that cannot run. Within a queue, ready
-- tasks are ordered by score (priority, aged), then by rank (a round robin over the buckets of keys), then by age.
CREATE TABLE pointsman_task (
    seq               INTEGER PRIMARY KEY,
    queue             INTEGER NOT NULL,
    event             INTEGER, -- NULL for the task of a source or of an order
    phase             INTEGER NOT NULL,
    lane              INTEGER,
    lane_position     INTEGER, -- its position in the lane; NULL if it is not in the lane
    concurrency_group INTEGER, -- the per-key concurrency group of an unordered task
    key_bucket        INTEGER,
    sync              INTEGER NOT NULL,
    stage             INTEGER NOT NULL, -- position among the synchronous tasks of the event; the others come after
    priority          INTEGER NOT NULL,
    score             INTEGER NOT NULL,
    rank              INTEGER NOT NULL,
    due               INTEGER NOT NULL,
    attempt           INTEGER NOT NULL,
    retries           INTEGER NOT NULL,
    crashes           INTEGER NOT NULL,
    late              INTEGER NOT NULL, -- runs out of order: retried by a person, adopted or replayed
    node              INTEGER,
    fence             INTEGER,
    leased_until      INTEGER,
    started           INTEGER,
    prev_sent         INTEGER, -- the previous event of the same object that was sent to the handler
    planned           INTEGER,
    created           INTEGER NOT NULL,
    reason            INTEGER, -- why a task is in error: 0 failed, 1 crashed, 2 canceled
    error             TEXT,
    order_number      INTEGER -- the order whose step it is
);
CREATE INDEX pointsman_task_ready ON pointsman_task (queue, score DESC, rank, seq, key_bucket) WHERE phase = :ready;
CREATE INDEX pointsman_task_due ON pointsman_task (due) WHERE phase = :delayed;
CREATE INDEX pointsman_task_sync_gated ON pointsman_task (event, stage) WHERE phase = :sync_gated;
CREATE INDEX pointsman_task_lane ON pointsman_task (lane, lane_position) WHERE lane_position IS NOT NULL;
CREATE INDEX pointsman_task_concurrency_group ON pointsman_task (concurrency_group, phase, seq)
WHERE concurrency_group IS NOT NULL;
-- One index for each phase: SQLite does not use an index on `phase IN (4, 5)` for a query of only one of them. Tasks of
-- phase 4 (`scheduled`) are selected ahead of a claim; tasks that wait for a time are in pointsman_task_due.
CREATE INDEX pointsman_task_phase_scheduled ON pointsman_task (score DESC, rank, seq) WHERE phase = :scheduled;
CREATE INDEX pointsman_task_running ON pointsman_task (node) WHERE phase = :locked;
CREATE INDEX pointsman_task_worker_lease_end ON pointsman_task (leased_until) WHERE leased_until IS NOT NULL;
CREATE INDEX pointsman_task_missing ON pointsman_task (queue, seq) WHERE phase = :missing;
CREATE INDEX pointsman_task_halted_or_missing ON pointsman_task (seq) WHERE phase >= :halted;
CREATE INDEX pointsman_task_out_of_order ON pointsman_task (event) WHERE late = 1;

-- Ended tasks. `type` is the event's type, the source's collection, or the chain node of the step.
CREATE TABLE pointsman_history (
    seq       INTEGER PRIMARY KEY,
    queue     INTEGER NOT NULL,
    event     INTEGER,
    type      TEXT NOT NULL,
    key       TEXT,
    status    INTEGER NOT NULL, -- 0: done, 1: error
    reason    INTEGER, -- why a task is in error: 0 failed, 1 crashed, 2 canceled
    sync      INTEGER NOT NULL,
    stage     INTEGER NOT NULL, -- as in pointsman_task
    priority  INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    retries   INTEGER NOT NULL,
    crashes   INTEGER NOT NULL,
    late      INTEGER NOT NULL, -- ran out of order
    has_lane  INTEGER NOT NULL,
    prev_sent INTEGER,
    planned   INTEGER,
    created   INTEGER NOT NULL,
    started   INTEGER,
    finished  INTEGER NOT NULL,
    error     TEXT,
    result    TEXT
);
-- Indexes of failures and of runs of sources, which are rare among successes. A step of an order has no event either,
-- but has a key.
CREATE INDEX pointsman_history_failed ON pointsman_history (seq) WHERE status = :status_error;
CREATE INDEX pointsman_history_out_of_order ON pointsman_history (event) WHERE late = 1;
CREATE INDEX pointsman_history_collection_runs ON pointsman_history (seq) WHERE event IS NULL AND key IS NULL;

-- Attempts that did not succeed; the task itself records a success.
CREATE TABLE pointsman_attempt (
    task    INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    started INTEGER NOT NULL,
    ended   INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    error   TEXT,
    PRIMARY KEY (task, number)
) WITHOUT ROWID;

CREATE TABLE pointsman_log (
    task    INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    time    INTEGER NOT NULL,
    level   INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (task, n)
) WITHOUT ROWID;

-- Idempotency keys with the responses to their requests. `n` ascends with the time of writing, so that retention finds
-- the oldest rows.
CREATE TABLE pointsman_idempotency_record (
    n        INTEGER PRIMARY KEY,
    tenant   TEXT NOT NULL,
    key      TEXT NOT NULL,
    digest   BLOB NOT NULL,
    response TEXT NOT NULL,
    at       INTEGER NOT NULL, -- when the response was recorded
    UNIQUE (tenant, key)
);

CREATE TABLE pointsman_rule (
    kind   TEXT NOT NULL, -- pause or block
    space  TEXT NOT NULL, -- the kind of the scope: handler, collection, schedule or chain
    name   TEXT NOT NULL,
    tenant TEXT NOT NULL, -- empty: all tenants
    by     TEXT NOT NULL, -- who set the rule
    reason TEXT NOT NULL,
    since  INTEGER NOT NULL,
    PRIMARY KEY (kind, space, name, tenant)
) WITHOUT ROWID;

CREATE TABLE pointsman_node (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    name           TEXT NOT NULL,
    joined         INTEGER NOT NULL,
    last_heartbeat INTEGER NOT NULL,
    gone           INTEGER NOT NULL, -- 1 after the node has left or has been declared gone
    capabilities   TEXT NOT NULL DEFAULT ''
);

-- The progress of each schedule, and its last event. A schedule that no node registers any more is deleted after a
-- while.
CREATE TABLE pointsman_schedule (
    name               TEXT PRIMARY KEY,
    expression         TEXT NOT NULL,
    resolved_up_to     INTEGER NOT NULL, -- the last planned time that has a row in the fire ledger
    next_catch_up      INTEGER, -- the first planned time that a rule skipped and that is still to be caught up
    last_event         INTEGER,
    last_registered_at INTEGER NOT NULL DEFAULT 0 -- when a node last registered it
) WITHOUT ROWID;

-- The fire ledger: one row for each planned time. `n` ascends with the time of writing, so that retention finds the
-- oldest rows.
CREATE TABLE pointsman_fire (
    n        INTEGER PRIMARY KEY,
    schedule TEXT NOT NULL,
    planned  INTEGER NOT NULL,
    at       INTEGER NOT NULL, -- when the row was written
    outcome  TEXT NOT NULL,
    event    INTEGER,
    task     TEXT,
    UNIQUE (schedule, planned)
);

-- The audit log.
CREATE TABLE pointsman_audit_entry (
    n      INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    by     TEXT NOT NULL, -- who did it
    action TEXT NOT NULL,
    what   TEXT NOT NULL, -- what it was done to
    detail TEXT NOT NULL
);

CREATE TABLE pointsman_chain (
    path             TEXT PRIMARY KEY,
    def              TEXT NOT NULL,
    defined          INTEGER NOT NULL,
    state            TEXT NOT NULL,
    reconciled_up_to INTEGER -- the chain has changed, and orders beyond this number have yet to be re-evaluated
) WITHOUT ROWID;

-- Unfinished orders. Order ids are unique per tenant: orders of several tenants may have the same key.
CREATE TABLE pointsman_order (
    n                 INTEGER PRIMARY KEY, -- the number of the order
    key               TEXT NOT NULL, -- /chain/path,id
    chain             TEXT NOT NULL,
    node              TEXT NOT NULL,
    tenant            TEXT NOT NULL,
    value             TEXT NOT NULL,
    priority          INTEGER NOT NULL,
    planned           INTEGER,
    created           INTEGER NOT NULL,
    started           INTEGER,
    suspended         INTEGER NOT NULL,
    task              INTEGER, -- the task of the current step, which points back by `order_number`
    origin            INTEGER, -- the event that created the order
    depth             INTEGER NOT NULL, -- the depth of that event
    step_succeeded    INTEGER NOT NULL DEFAULT 0,
    suspended_by_task INTEGER, -- the task that suspended it
    took_on_error     INTEGER NOT NULL DEFAULT 0, -- a failed step moved it along an on_error edge
    UNIQUE (key, tenant)
);
CREATE INDEX pointsman_order_chain ON pointsman_order (chain);
CREATE INDEX pointsman_order_node ON pointsman_order (chain, node);

-- Ended orders: their ids are kept for a while, so that a repeated request does not run an order twice.
CREATE TABLE pointsman_ended_order (
    key     TEXT NOT NULL, -- /chain/path,id
    tenant  TEXT NOT NULL,
    outcome TEXT NOT NULL, -- finished, failed, removed
    node    TEXT NOT NULL,
    ended   INTEGER NOT NULL,
    PRIMARY KEY (key, tenant)
) WITHOUT ROWID;
CREATE INDEX pointsman_ended_order_age ON pointsman_ended_order (ended);

-- A digest of each configured object (handler, schedule or chain), to detect changes of the configuration files.
CREATE TABLE pointsman_configured_object_digest (
    key    TEXT PRIMARY KEY,
    digest TEXT NOT NULL
) WITHOUT ROWID;

-- The tables of the store.
--
-- Tables that only grow (journal, history, attempts, logs) are partitioned, with many rows in each partition, and
-- expire by dropping whole partitions. Tables that change (task, queue, commit_version) are small: an ended task moves
-- to the history. No payload is stored twice: a task refers to its event. Times are microseconds since 1970. Names are
-- only looked up, and compared by their bytes (COLLATE "C"): any other order takes longer, and depends on the machine.

-- One row, which never changes. The lock on this row is the write lock.
CREATE TABLE pointsman.write_lock (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton)
);
INSERT INTO pointsman.write_lock DEFAULT VALUES;

-- The last commits: each inserts a row with the counters. While a snapshot is open for long (a dump), dead rows cannot
-- be removed: if all commits updated one row, each would scan all its dead versions, whereas the index finds the newest
-- of many rows at once.
--
-- `invalidations` lists the cached rows that each commit has made stale on other nodes: 4 × number + 0 for a queue, + 1
-- for a handler's limiter, + 2 for a task, and 3 for all queues. It is NULL if there were too many.
-- `object_invalidations` contains the objects that it has written, with their new state; NULL if that is unknown.
CREATE TABLE pointsman.commit_version (
    version                bigint   PRIMARY KEY,        -- the number of the commit
    -- Distinguishes it from another commit of the same number in a lost history.
    nonce                  bigint   NOT NULL DEFAULT 0,
    registry_version       bigint   NOT NULL DEFAULT 0, -- counts changes of handlers, chains, rules and nodes
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
    last_archive_number    bigint   NOT NULL DEFAULT 0, -- the greatest history.n
    expired_archive_number bigint   NOT NULL DEFAULT 0, -- rows of the history up to this n have expired
    expired_event_number   bigint   NOT NULL DEFAULT 0, -- the number of the last expired event
    journal_end            bigint   NOT NULL DEFAULT 0, -- the upper bound of the last partition of the journal
    history_end            bigint   NOT NULL DEFAULT 0, -- and of history, attempts and logs
    next_due               bigint                       -- a lower bound of the due times of delayed tasks
) WITH (vacuum_truncate = off, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE pointsman.commit_version
    ALTER COLUMN invalidations SET STORAGE PLAIN,
    ALTER COLUMN object_invalidations SET STORAGE PLAIN;
INSERT INTO pointsman.commit_version (version) VALUES (0);

-- The counters as of the last commit.
CREATE VIEW pointsman.last_commit AS SELECT * FROM pointsman.commit_version ORDER BY version DESC LIMIT 1;

-- Named texts: the namespace of task ids, the salt, the hash of the first token and others.
CREATE TABLE pointsman.meta (
    name text PRIMARY KEY,
    text text NOT NULL
);

-- The journal: all events. `number` counts them; `prev` is the previous event of the same object, `sub` the sub-object,
-- `depth` the length of the chain of causes, and `tasks` the number of tasks that the event has created. The tasks of
-- an event have consecutive numbers from first_task on, so that no index is needed to find them. Partitioned by
-- `number`; expired events that unfinished tasks still need have negative numbers.
CREATE TABLE pointsman.journal (
    number      bigint NOT NULL,
    id          bigint NOT NULL,
    prev        bigint,
    type        text   NOT NULL,
    key         text,
    sub         text,
    tenant      text   NOT NULL,
    value       text   NOT NULL,
    context     text,
    cause_event bigint,
    cause_task  bigint,
    depth       integer NOT NULL,
    first_task  bigint NOT NULL,
    tasks       bigint NOT NULL
) PARTITION BY RANGE (number);
CREATE INDEX journal_id ON pointsman.journal (id);
CREATE INDEX journal_cause ON pointsman.journal (cause_event) WHERE cause_event IS NOT NULL;
CREATE TABLE pointsman.journal_retained PARTITION OF pointsman.journal FOR VALUES FROM (MINVALUE) TO (0);

-- Every thousandth event, so that the event with about a certain number is found without counting.
CREATE TABLE pointsman.journal_sparse_index (
    number bigint PRIMARY KEY,
    id     bigint NOT NULL
);

-- The last event of each object, and, for each handler, the last event of the object that was sent to it. A row exists
-- for as long as the object is used, also if its events have expired.
CREATE TABLE pointsman.object (
    tenant     text   COLLATE "C" NOT NULL,
    key        text   COLLATE "C" NOT NULL,
    number     bigint NOT NULL,
    last_event bigint NOT NULL,
    last_sent  bytea  NOT NULL,
    checked    bigint NOT NULL DEFAULT 0, -- when retention last found the object in use, as an event id; 0: never
    PRIMARY KEY (tenant, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX object_last_found_in_use ON pointsman.object (checked);

-- All handlers that were ever registered. `defined`: a node has registered it now; `gaps`: the ranges of the journal in
-- which it was not defined.
CREATE TABLE pointsman.handler (
    id            bigint  PRIMARY KEY,
    name          text    NOT NULL UNIQUE,
    def           text    NOT NULL,
    defined       boolean NOT NULL,
    limiter_state text    NOT NULL DEFAULT '',
    gaps          text    NOT NULL DEFAULT '[]'
) WITH (fillfactor = 50);

-- A queue for each handler and tenant; for sources and chains also for each collection or chain node. The counters
-- count its tasks by phase. `canvas_id`: the uuid of the tenant in the documented tables.
CREATE TABLE pointsman.queue (
    id         bigint PRIMARY KEY,
    handler    bigint NOT NULL REFERENCES pointsman.handler,
    tenant     text   NOT NULL,
    collection text   NOT NULL, -- empty: the queue of a handler of events; /chain,node: the queue of a chain node
    canvas_id  uuid   NOT NULL,
    ready      bigint NOT NULL DEFAULT 0,
    waiting    bigint NOT NULL DEFAULT 0,
    scheduled  bigint NOT NULL DEFAULT 0,
    running    bigint NOT NULL DEFAULT 0,
    halted     bigint NOT NULL DEFAULT 0,
    missing    bigint NOT NULL DEFAULT 0,
    UNIQUE (handler, tenant, collection)
) WITH (fillfactor = 20, vacuum_truncate = off, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_scale_factor = 0.01);

-- Unfinished tasks. `phase`: 0 blocked by its lane or concurrency group, 1 gated by synchronous tasks of its event, 2
-- delayed, 3 ready, 4 scheduled, 5 locked, 6 halted, 7 missing. Each partial index contains only the tasks of its
-- phase, so that a search for work never scans tasks that cannot run.
CREATE TABLE pointsman.task (
    seq               bigint   PRIMARY KEY,
    queue             bigint   NOT NULL,
    event             bigint,
    order_number      bigint, -- the order whose step it is
    phase             smallint NOT NULL,
    lane              bigint,
    lane_position     bigint,
    concurrency_group bigint, -- the tasks of a handler and an object, of which a limited number may run at once
    key_bucket        integer, -- the object's bucket in the round robin over objects
    sync              boolean  NOT NULL, -- the task is synchronous: later stages of its event wait for it
    stage             bigint   NOT NULL, -- the position among the stages of its event
    priority          bigint   NOT NULL,
    score             bigint   NOT NULL, -- the priority, with ageing; a greater score runs first
    rank              bigint   NOT NULL, -- the order among tasks of the same score, which is a round robin over objects
    due               bigint   NOT NULL,
    attempt           bigint   NOT NULL, -- the number of the last attempt
    retries           bigint   NOT NULL,
    crashes           bigint   NOT NULL,
    late              boolean  NOT NULL, -- runs out of order: it was retried after it was parked, adopted or replayed
    node              bigint,
    fence             bigint,
    leased_until      bigint,
    started           bigint,
    prev_sent         bigint,
    planned           bigint,
    created           bigint   NOT NULL,
    reason            smallint,
    error             text
) WITH (fillfactor = 70, vacuum_truncate = off, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_analyze_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX task_ready ON pointsman.task (queue, score DESC, rank, seq) INCLUDE (key_bucket) WHERE phase = :ready;
CREATE INDEX task_due ON pointsman.task (due) WHERE phase = :delayed;
CREATE INDEX task_gated ON pointsman.task (event, stage) WHERE phase = :sync_gated;
CREATE INDEX task_lane ON pointsman.task (lane, lane_position) WHERE lane_position IS NOT NULL;
CREATE INDEX task_concurrency_group ON pointsman.task (concurrency_group, phase, seq)
WHERE concurrency_group IS NOT NULL;
-- Tasks of status `scheduled`: selected, not yet claimed; in claim order. Delayed tasks are in task_due.
CREATE INDEX task_phase_scheduled ON pointsman.task (score DESC, rank, seq) WHERE phase = :scheduled;
CREATE INDEX task_running ON pointsman.task (node) WHERE phase = :locked;
-- Only leases of pull workers end at a time; those of nodes last as long as their heartbeats.
CREATE INDEX task_worker_lease_end ON pointsman.task (leased_until) WHERE leased_until IS NOT NULL;
CREATE INDEX task_missing ON pointsman.task (queue, seq) WHERE phase = :missing;
CREATE INDEX task_halted_or_missing ON pointsman.task (seq) WHERE phase >= :halted;
CREATE INDEX task_out_of_order ON pointsman.task (event) WHERE late;

-- Ended tasks. `n`, the archive number, counts them in the order in which they ended. Partitioned by `n`.
CREATE TABLE pointsman.history (
    n         bigint   NOT NULL,
    seq       bigint   NOT NULL,
    queue     bigint   NOT NULL,
    event     bigint,
    type      text     NOT NULL,
    key       text,
    status    smallint NOT NULL,
    reason    smallint,
    sync      boolean  NOT NULL,
    stage     bigint   NOT NULL,
    priority  bigint   NOT NULL,
    attempt   bigint   NOT NULL,
    retries   bigint   NOT NULL,
    crashes   bigint   NOT NULL,
    late      boolean  NOT NULL,
    has_lane  boolean  NOT NULL,
    prev_sent bigint,
    planned   bigint,
    created   bigint   NOT NULL,
    started   bigint,
    finished  bigint   NOT NULL,
    error     text,
    result    text
) PARTITION BY RANGE (n);
CREATE INDEX history_seq ON pointsman.history (seq);
CREATE INDEX history_n ON pointsman.history (n);
-- These indexes find the few failures, and the few runs of sources, among many successes.
CREATE INDEX history_failed ON pointsman.history (seq) WHERE status = :status_error;
CREATE INDEX history_out_of_order ON pointsman.history (event) WHERE late;
CREATE INDEX history_source_runs ON pointsman.history (seq) WHERE event IS NULL AND key IS NULL;

-- Attempts that did not succeed; a success is in the row of the task. Partitioned by `partition_key`: the last archive
-- number when the row was written; negative for rows whose tasks outlived their partition.
CREATE TABLE pointsman.attempt (
    partition_key bigint   NOT NULL,
    task          bigint   NOT NULL,
    number        bigint   NOT NULL,
    started       bigint   NOT NULL,
    ended         bigint   NOT NULL,
    outcome       smallint NOT NULL,
    error         text
) PARTITION BY RANGE (partition_key);
CREATE INDEX attempt_task ON pointsman.attempt (task, number);
CREATE TABLE pointsman.attempt_retained PARTITION OF pointsman.attempt FOR VALUES FROM (MINVALUE) TO (0);

-- Log lines of tasks, partitioned as attempts are. `n` counts the lines of a task.
CREATE TABLE pointsman.log (
    partition_key bigint   NOT NULL,
    task          bigint   NOT NULL,
    n             bigint   NOT NULL,
    time          bigint   NOT NULL,
    level         smallint NOT NULL,
    message       text     NOT NULL
) PARTITION BY RANGE (partition_key);
CREATE INDEX log_task ON pointsman.log (task, n);
CREATE TABLE pointsman.log_retained PARTITION OF pointsman.log FOR VALUES FROM (MINVALUE) TO (0);

-- Adds a partition to a table. The partition is created as a table and then attached: creating it as a partition would
-- wait for all readers of the table, and later readers would wait behind it.
CREATE FUNCTION pointsman.add_partition(parent text, low bigint, high bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    partition_name text := parent || '_' || low;
    key_column     text := CASE parent WHEN 'journal' THEN 'number' WHEN 'history' THEN 'n' ELSE 'partition_key' END;
BEGIN
    EXECUTE format('CREATE TABLE pointsman.%I (LIKE pointsman.%I INCLUDING ALL, CHECK (%I >= %s AND %I < %s))',
                   partition_name, parent, key_column, low, key_column, high);
    EXECUTE format('ALTER TABLE pointsman.%I ATTACH PARTITION pointsman.%I FOR VALUES FROM (%s) TO (%s)',
                   parent, partition_name, low, high);
END $$;

-- Idempotency keys used over HTTP, with the responses to their requests.
CREATE TABLE pointsman.idempotency_record (
    n        bigint GENERATED ALWAYS AS IDENTITY,
    tenant   text   COLLATE "C" NOT NULL,
    key      text   COLLATE "C" NOT NULL,
    digest   bytea  NOT NULL,
    response text   NOT NULL,
    at       bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_record_at ON pointsman.idempotency_record (at);

-- Nodes. `gone`: the node has left or was declared dead.
CREATE TABLE pointsman.node (
    id             bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text    NOT NULL,
    joined         bigint  NOT NULL,
    last_heartbeat bigint  NOT NULL,
    gone           boolean NOT NULL DEFAULT false,
    capabilities   text    NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

-- All chains that were ever defined. `state`: whether the chain or its nodes are stopped.
CREATE TABLE pointsman.chain (
    path             text    PRIMARY KEY,
    def              text    NOT NULL,
    defined          boolean NOT NULL,
    state            text    NOT NULL,
    reconciled_up_to bigint -- the chain has changed, and orders after this number have yet to be re-evaluated
);

-- Unfinished orders. `task`: the task of the current step, whose `order_number` is `n`. Keys are unique per tenant.
-- Lists are sorted by key and tenant, byte by byte.
CREATE TABLE pointsman.orders (
    n                 bigint  PRIMARY KEY,
    key               text    COLLATE "C" NOT NULL, -- /chain/path,id
    chain             text    NOT NULL,
    node              text    NOT NULL,
    tenant            text    COLLATE "C" NOT NULL,
    value             text    NOT NULL,
    priority          bigint  NOT NULL,
    planned           bigint,
    created           bigint  NOT NULL,
    started           bigint,
    suspended         boolean NOT NULL,
    task              bigint,
    origin            bigint, -- the event that started the order
    depth             integer NOT NULL, -- the depth of that event in its chain of causes
    step_succeeded    boolean NOT NULL,
    suspended_by_task bigint, -- the task that suspended it
    took_on_error     boolean NOT NULL DEFAULT false, -- a failed step has led the order to an on_error node
    UNIQUE (key, tenant)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX orders_chain ON pointsman.orders (chain, n);

-- Ended orders. Their keys are kept for a while, so that a repeated request does not run an order twice.
CREATE TABLE pointsman.ended_order (
    key     text   COLLATE "C" NOT NULL, -- /chain/path,id
    tenant  text   COLLATE "C" NOT NULL,
    outcome text   NOT NULL, -- finished, failed, removed
    node    text   NOT NULL,
    ended   bigint NOT NULL,
    PRIMARY KEY (key, tenant)
);
CREATE INDEX ended_order_age ON pointsman.ended_order (ended);

-- A digest of each object that is configured in files, to detect changes.
CREATE TABLE pointsman.file_digest (
    key    text PRIMARY KEY,
    digest text NOT NULL
);

-- The progress of each schedule, and its last event. `next_catch_up`: the first missed time that is caught up later.
CREATE TABLE pointsman.schedule (
    name               text   PRIMARY KEY,
    expression         text   NOT NULL,
    resolved_up_to     bigint NOT NULL,
    next_catch_up      bigint,
    last_event         bigint,
    last_registered_at bigint NOT NULL -- when a node last registered it
);

-- The fire ledger: one row for each planned time, recorded at the time `at`.
CREATE TABLE pointsman.fire (
    schedule text   NOT NULL,
    planned  bigint NOT NULL,
    at       bigint NOT NULL,
    outcome  text   NOT NULL,
    event    bigint,
    task     text,
    PRIMARY KEY (schedule, planned)
);
CREATE INDEX fire_recorded_at ON pointsman.fire (at);
CREATE INDEX fire_event ON pointsman.fire (event) WHERE event IS NOT NULL;

-- The audit log: who (`by`) did what (`action`) to what (`what`).
CREATE TABLE pointsman.audit_entry (
    n      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     bigint NOT NULL,
    by     text   NOT NULL,
    action text   NOT NULL,
    what   text   NOT NULL,
    detail text   NOT NULL
);

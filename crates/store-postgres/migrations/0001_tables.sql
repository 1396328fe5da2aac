-- The tables of the store.
--
-- What only grows (journal, history, attempts, logs) lies in slices of many rows each, and is forgotten by dropping
-- whole slices. What changes (task, queue, sequencer) is small: an ended task moves to the history. No payload is
-- stored twice: a task points to its event. Times are microseconds since 1970.

-- One row. Whoever has locked it may write; everything that the writers remember beside the tables hangs on it.
-- `changes` tells what the last commits changed, in pairs of a version and a code: 4 × number + 0 for a queue, + 1 for
-- a handler's pace, + 2 for a task, and 3 for all queues. It is complete for all commits after `told_from`.
CREATE TABLE pointsman.sequencer (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    version    bigint   NOT NULL DEFAULT 0, -- counts commits
    registry   bigint   NOT NULL DEFAULT 0, -- counts changes of handlers, chains, rules and nodes
    told_from  bigint   NOT NULL DEFAULT 0,
    changes    bigint[] NOT NULL DEFAULT '{}',
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
) WITH (fillfactor = 10, vacuum_truncate = off, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE pointsman.sequencer ALTER COLUMN changes SET STORAGE PLAIN;
INSERT INTO pointsman.sequencer DEFAULT VALUES;

CREATE TABLE pointsman.meta (
    name text PRIMARY KEY,
    text text NOT NULL
);

-- Events, `number` counting them all. The tasks of an event have consecutive numbers from first_task on, so that no
-- index is needed to find them. Slices by `number`; below zero lie those that were forgotten and that unfinished tasks
-- still need.
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
    tasks       integer NOT NULL
) PARTITION BY RANGE (number);
CREATE INDEX journal_id ON pointsman.journal (id);
CREATE INDEX journal_cause ON pointsman.journal (cause_event) WHERE cause_event IS NOT NULL;
CREATE TABLE pointsman.journal_kept PARTITION OF pointsman.journal FOR VALUES FROM (MINVALUE) TO (0);

-- Every thousandth event, so that "the newest N" is found without counting.
CREATE TABLE pointsman.mark (
    number bigint PRIMARY KEY,
    id     bigint NOT NULL
);

-- The last event of each object, and, for each handler, the last one that was sent to it. Outlives the journal.
CREATE TABLE pointsman.object (
    tenant text   NOT NULL,
    key    text   NOT NULL,
    number bigint NOT NULL,
    last   bigint NOT NULL,
    sent   bytea  NOT NULL,
    PRIMARY KEY (tenant, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE pointsman.handler (
    id      bigint  PRIMARY KEY,
    name    text    NOT NULL UNIQUE,
    def     text    NOT NULL,
    defined boolean NOT NULL,
    pace    text    NOT NULL DEFAULT '',
    gaps    text    NOT NULL DEFAULT '[]'
) WITH (fillfactor = 50);

-- A queue for each handler and tenant; of sources and chains for each collection or node. `canvas_id`: the tenant, as
-- the documented tables name it.
CREATE TABLE pointsman.queue (
    id         bigint PRIMARY KEY,
    handler    bigint NOT NULL REFERENCES pointsman.handler,
    tenant     text   NOT NULL,
    collection text   NOT NULL, -- empty: the queue of a handler of events; /chain,node: that of a node
    canvas_id  uuid   NOT NULL,
    ready      bigint NOT NULL DEFAULT 0,
    waiting    bigint NOT NULL DEFAULT 0,
    scheduled  bigint NOT NULL DEFAULT 0,
    running    bigint NOT NULL DEFAULT 0,
    halted     bigint NOT NULL DEFAULT 0,
    missing    bigint NOT NULL DEFAULT 0,
    UNIQUE (handler, tenant, collection)
) WITH (fillfactor = 20, vacuum_truncate = off, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.01);

-- Unfinished tasks. `phase` says what a task waits for. Each partial index holds only the tasks of its phase, so that
-- looking for work never passes over what cannot run.
CREATE TABLE pointsman.task (
    seq       bigint   PRIMARY KEY,
    queue     bigint   NOT NULL,
    event     bigint,
    ord       bigint, -- the order whose step it is
    phase     smallint NOT NULL,
    lane      bigint,
    place     bigint,
    crowd     bigint,
    bucket    integer,
    sync      boolean  NOT NULL,
    stage     bigint   NOT NULL,
    priority  bigint   NOT NULL,
    score     bigint   NOT NULL,
    rank      bigint   NOT NULL,
    due       bigint   NOT NULL,
    attempt   bigint   NOT NULL,
    retries   bigint   NOT NULL,
    crashes   bigint   NOT NULL,
    late      boolean  NOT NULL,
    node      bigint,
    fence     bigint,
    until     bigint,
    started   bigint,
    prev_sent bigint,
    planned   bigint,
    created   bigint   NOT NULL,
    reason    smallint,
    error     text
) WITH (fillfactor = 70, vacuum_truncate = off, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_analyze_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX task_ready ON pointsman.task (queue, score DESC, rank, seq) INCLUDE (bucket) WHERE phase = 3;
CREATE INDEX task_due ON pointsman.task (due) WHERE phase = 2;
CREATE INDEX task_gate ON pointsman.task (event, stage) WHERE phase = 1;
CREATE INDEX task_lane ON pointsman.task (lane, place) WHERE place IS NOT NULL;
CREATE INDEX task_crowd ON pointsman.task (crowd, phase, seq) WHERE crowd IS NOT NULL;
CREATE INDEX task_scheduled ON pointsman.task (score DESC, rank, seq) WHERE phase = 4;
CREATE INDEX task_running ON pointsman.task (node) WHERE phase = 5;
CREATE INDEX task_leased ON pointsman.task (until) WHERE until IS NOT NULL;
CREATE INDEX task_missing ON pointsman.task (queue, seq) WHERE phase = 7;
CREATE INDEX task_parked ON pointsman.task (seq) WHERE phase >= 6;
CREATE INDEX task_late ON pointsman.task (event) WHERE late;

-- Ended tasks, `n` counting them in the order in which they ended. Slices by `n`.
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
    laned     boolean  NOT NULL,
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
-- Failures and runs of sources are what people look for among a million successes.
CREATE INDEX history_failed ON pointsman.history (seq) WHERE status = 1;
CREATE INDEX history_late ON pointsman.history (event) WHERE late;
CREATE INDEX history_runs ON pointsman.history (seq) WHERE event IS NULL AND key IS NULL;

-- Attempts that ended otherwise than by success; a success is told by the task itself. Slices by `era`: how many tasks
-- had ended when the row was written. Below zero lie those whose tasks outlived their slice.
CREATE TABLE pointsman.attempt (
    era     bigint   NOT NULL,
    task    bigint   NOT NULL,
    number  bigint   NOT NULL,
    started bigint   NOT NULL,
    ended   bigint   NOT NULL,
    how     smallint NOT NULL,
    error   text
) PARTITION BY RANGE (era);
CREATE INDEX attempt_task ON pointsman.attempt (task, number);
CREATE TABLE pointsman.attempt_kept PARTITION OF pointsman.attempt FOR VALUES FROM (MINVALUE) TO (0);

CREATE TABLE pointsman.log (
    era     bigint   NOT NULL,
    task    bigint   NOT NULL,
    n       bigint   NOT NULL,
    time    bigint   NOT NULL,
    level   smallint NOT NULL,
    message text     NOT NULL
) PARTITION BY RANGE (era);
CREATE INDEX log_task ON pointsman.log (task, n);
CREATE TABLE pointsman.log_kept PARTITION OF pointsman.log FOR VALUES FROM (MINVALUE) TO (0);

-- Makes a slice of a table that is cut into slices. It is attached, and not made as a part from the start, because
-- that would wait for everybody who reads the table, and everybody who comes after would wait for it.
CREATE FUNCTION pointsman.add_slice(parent text, low bigint, high bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    slice text := parent || '_' || low;
    cut   text := CASE parent WHEN 'journal' THEN 'number' WHEN 'history' THEN 'n' ELSE 'era' END;
BEGIN
    EXECUTE format('CREATE TABLE pointsman.%I (LIKE pointsman.%I INCLUDING ALL, CHECK (%I >= %s AND %I < %s))',
                   slice, parent, cut, low, cut, high);
    EXECUTE format('ALTER TABLE pointsman.%I ATTACH PARTITION pointsman.%I FOR VALUES FROM (%s) TO (%s)',
                   parent, slice, low, high);
END $$;

CREATE TABLE pointsman.idempotency (
    n      bigint GENERATED ALWAYS AS IDENTITY,
    tenant text   NOT NULL,
    key    text   NOT NULL,
    digest bytea  NOT NULL,
    answer text   NOT NULL,
    at     bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_at ON pointsman.idempotency (at);

CREATE TABLE pointsman.node (
    id        bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name      text    NOT NULL,
    joined    bigint  NOT NULL,
    heard     bigint  NOT NULL,
    gone      boolean NOT NULL DEFAULT false,
    abilities text    NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

-- `pending`: orders beyond this number have yet to be looked at, because the chain has changed.
CREATE TABLE pointsman.chain (
    path    text    PRIMARY KEY,
    def     text    NOT NULL,
    defined boolean NOT NULL,
    state   text    NOT NULL,
    pending bigint
);

-- Orders on their way. `task`: that of the step where it stands; the task points back by `ord`.
CREATE TABLE pointsman.orders (
    n         bigint  PRIMARY KEY,
    key       text    COLLATE "C" NOT NULL UNIQUE, -- /chain/path,id
    chain     text    NOT NULL,
    node      text    NOT NULL,
    tenant    text    NOT NULL,
    value     text    NOT NULL,
    priority  bigint  NOT NULL,
    planned   bigint,
    created   bigint  NOT NULL,
    started   bigint,
    suspended boolean NOT NULL,
    task      bigint,
    origin    bigint, -- the event that it was made for, and the depth of that
    depth     bigint  NOT NULL,
    stepped   boolean NOT NULL,
    halted_by bigint  -- the task that suspended it
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX orders_chain ON pointsman.orders (chain, n);

-- A digest of each thing that is configured in files, to tell what has changed.
CREATE TABLE pointsman.file (
    key    text PRIMARY KEY,
    digest text NOT NULL
);

-- Where each schedule stands, and what it made last.
CREATE TABLE pointsman.schedule (
    name       text   PRIMARY KEY,
    expression text   NOT NULL,
    settled    bigint NOT NULL,
    unmet      bigint,
    last_event bigint,
    named      bigint NOT NULL -- when a node last named it
);

-- The fire ledger: a row a planned time.
CREATE TABLE pointsman.fire (
    schedule text   NOT NULL,
    planned  bigint NOT NULL,
    at       bigint NOT NULL,
    outcome  text   NOT NULL,
    event    bigint,
    task     text,
    PRIMARY KEY (schedule, planned)
);
CREATE INDEX fire_at ON pointsman.fire (at);
CREATE INDEX fire_event ON pointsman.fire (event) WHERE event IS NOT NULL;

-- Who changed what.
CREATE TABLE pointsman.deed (
    n      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     bigint NOT NULL,
    by     text   NOT NULL,
    action text   NOT NULL,
    what   text   NOT NULL,
    detail text   NOT NULL
);

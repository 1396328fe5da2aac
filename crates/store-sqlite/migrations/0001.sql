-- The layout of the embedded store.
--
-- Tables that only grow (journal, history, logs) are append-only. The table that changes (task) is small and contains
-- unfinished tasks only: an ended task moves to the history. No payload is stored twice: a task points to its event.
-- Names carry a prefix because a program may keep its own tables in the same file (see unit_of_work.rs).

CREATE TABLE pointsman_meta (
    name  TEXT PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;

-- Events in the order of their ids. The tasks of an event have consecutive numbers from first_task on, so that
-- no index is needed to find them.
CREATE TABLE pointsman_journal (
    id          INTEGER PRIMARY KEY,
    prev        INTEGER,
    type        TEXT NOT NULL,
    key         TEXT,
    sub         TEXT,
    tenant      TEXT NOT NULL,
    value       TEXT NOT NULL,
    context     TEXT,
    cause_event INTEGER,
    cause_task  INTEGER,
    depth       INTEGER NOT NULL,
    first_task  INTEGER NOT NULL,
    tasks       INTEGER NOT NULL
);

-- Every thousandth event, so that "the newest N" is found without counting.
CREATE TABLE pointsman_mark (
    n  INTEGER PRIMARY KEY,
    id INTEGER NOT NULL
);

-- The last event of each object, and, for each handler, the last one that was sent to it. Outlives the journal.
CREATE TABLE pointsman_object (
    tenant TEXT NOT NULL,
    key    TEXT NOT NULL,
    last   INTEGER NOT NULL,
    sent   BLOB NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;

CREATE TABLE pointsman_handler (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    def     TEXT NOT NULL,
    defined INTEGER NOT NULL
);

-- One row for each (handler, tenant): its position in the round robin and its counters.
CREATE TABLE pointsman_queue (
    id        INTEGER PRIMARY KEY,
    handler   INTEGER NOT NULL,
    tenant    TEXT NOT NULL,
    turn      INTEGER NOT NULL,
    ready     INTEGER NOT NULL,
    waiting   INTEGER NOT NULL,
    scheduled INTEGER NOT NULL,
    running   INTEGER NOT NULL,
    halted    INTEGER NOT NULL,
    missing   INTEGER NOT NULL,
    UNIQUE (handler, tenant)
);

-- Unfinished tasks. `phase` says what a task waits for; see phase.rs. Each partial index holds only the tasks
-- of its phases, so that a search for work never scans tasks that cannot run.
CREATE TABLE pointsman_task (
    seq       INTEGER PRIMARY KEY,
    queue     INTEGER NOT NULL,
    event     INTEGER NOT NULL,
    phase     INTEGER NOT NULL,
    lane      INTEGER,
    sync      INTEGER NOT NULL,
    stage     INTEGER NOT NULL,
    priority  INTEGER NOT NULL,
    due       INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    retries   INTEGER NOT NULL,
    crashes   INTEGER NOT NULL,
    late      INTEGER NOT NULL,
    node      INTEGER,
    fence     INTEGER,
    started   INTEGER,
    prev_sent INTEGER,
    created   INTEGER NOT NULL,
    reason    INTEGER,
    error     TEXT
);
CREATE INDEX pointsman_task_ready ON pointsman_task (queue, priority DESC, seq) WHERE phase = 3;
CREATE INDEX pointsman_task_due ON pointsman_task (due) WHERE phase = 2;
CREATE INDEX pointsman_task_gate ON pointsman_task (event, stage) WHERE phase = 1;
CREATE INDEX pointsman_task_lane ON pointsman_task (lane, seq) WHERE lane IS NOT NULL;
CREATE INDEX pointsman_task_held ON pointsman_task (phase, node) WHERE phase IN (4, 5);
CREATE INDEX pointsman_task_missing ON pointsman_task (queue, seq) WHERE phase = 7;

-- Ended tasks.
CREATE TABLE pointsman_history (
    seq       INTEGER PRIMARY KEY,
    queue     INTEGER NOT NULL,
    event     INTEGER NOT NULL,
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
    prev_sent INTEGER,
    created   INTEGER NOT NULL,
    started   INTEGER,
    finished  INTEGER NOT NULL,
    error     TEXT,
    result    TEXT
);

-- Attempts that did not succeed; the task itself records a success.
CREATE TABLE pointsman_attempt (
    task    INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    started INTEGER NOT NULL,
    ended   INTEGER NOT NULL,
    how     INTEGER NOT NULL,
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

CREATE TABLE pointsman_idempotency (
    n      INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    key    TEXT NOT NULL,
    digest BLOB NOT NULL,
    answer TEXT NOT NULL,
    at     INTEGER NOT NULL,
    UNIQUE (tenant, key)
);

CREATE TABLE pointsman_rule (
    kind    TEXT NOT NULL,
    handler TEXT NOT NULL,
    tenant  TEXT NOT NULL, -- empty: all tenants
    by      TEXT NOT NULL,
    reason  TEXT NOT NULL,
    since   INTEGER NOT NULL,
    PRIMARY KEY (kind, handler, tenant)
) WITHOUT ROWID;

CREATE TABLE pointsman_node (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    name   TEXT NOT NULL,
    joined INTEGER NOT NULL,
    heard  INTEGER NOT NULL,
    gone   INTEGER NOT NULL
);

-- Chains and orders, digests of configured files, and the causes of events.

-- `pending`: orders beyond this number have yet to be checked, because the chain has changed.
CREATE TABLE pointsman_chain (
    path    TEXT PRIMARY KEY,
    def     TEXT NOT NULL,
    defined INTEGER NOT NULL,
    state   TEXT NOT NULL,
    pending INTEGER
) WITHOUT ROWID;

-- Unfinished orders. `task`: the task of the current step; the task points back by `n`.
CREATE TABLE pointsman_order (
    n         INTEGER PRIMARY KEY,
    key       TEXT NOT NULL UNIQUE, -- /chain/path,id
    chain     TEXT NOT NULL,
    node      TEXT NOT NULL,
    tenant    TEXT NOT NULL,
    value     TEXT NOT NULL,
    priority  INTEGER NOT NULL,
    planned   INTEGER,
    created   INTEGER NOT NULL,
    started   INTEGER,
    suspended INTEGER NOT NULL,
    task      INTEGER,
    origin    INTEGER, -- the event that it was made for, and the depth of that
    depth     INTEGER NOT NULL,
    stepped   INTEGER NOT NULL DEFAULT 0,
    halted_by INTEGER -- the task that suspended it
);
CREATE INDEX pointsman_order_chain ON pointsman_order (chain);
CREATE INDEX pointsman_order_node ON pointsman_order (chain, node);

-- A digest of each object that is configured in files, to detect changes.
CREATE TABLE pointsman_file (
    key    TEXT PRIMARY KEY,
    digest TEXT NOT NULL
) WITHOUT ROWID;

ALTER TABLE pointsman_task ADD COLUMN ord INTEGER; -- the order whose step it is

CREATE INDEX pointsman_journal_cause ON pointsman_journal (cause_event) WHERE cause_event IS NOT NULL;

-- A step has no event either, but a key.
DROP INDEX pointsman_history_runs;
CREATE INDEX pointsman_history_runs ON pointsman_history (seq) WHERE event IS NULL AND key IS NULL;

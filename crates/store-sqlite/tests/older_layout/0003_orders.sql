-- Order ids are unique per tenant: orders of several tenants may have the same key.
ALTER TABLE pointsman_order RENAME TO pointsman_order_old;
DROP INDEX pointsman_order_chain;
DROP INDEX pointsman_order_node;
CREATE TABLE pointsman_order (
    n                 INTEGER PRIMARY KEY,
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
    task              INTEGER,
    origin            INTEGER, -- the event that started it, and the depth of that event
    depth             INTEGER NOT NULL,
    step_succeeded    INTEGER NOT NULL DEFAULT 0,
    suspended_by_task INTEGER, -- the task that suspended it
    took_on_error     INTEGER NOT NULL DEFAULT 0, -- a failed step moved it along an on_error edge
    UNIQUE (key, tenant)
);
INSERT INTO pointsman_order
      (n, key, chain, node, tenant, value, priority, planned, created, started, suspended, task, origin, depth,
       step_succeeded,
       suspended_by_task)
SELECT n, key, chain, node, tenant, value, priority, planned, created, started, suspended, task, origin, depth,
       step_succeeded,
       suspended_by_task
FROM pointsman_order_old;
DROP TABLE pointsman_order_old;
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

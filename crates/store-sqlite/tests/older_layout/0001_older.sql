
-- Turns the initial layout into an older one, for the tests of migrations: lanes without positions and concurrency
-- groups, objects without numbers, handlers without limiter state and gaps, and order ids that are unique among all
-- tenants.

DROP INDEX pointsman_task_lane;
DROP INDEX pointsman_task_concurrency_group;
ALTER TABLE pointsman_task DROP COLUMN lane_position;
ALTER TABLE pointsman_task DROP COLUMN concurrency_group;
CREATE INDEX pointsman_task_lane ON pointsman_task (lane, seq) WHERE lane IS NOT NULL;

DROP TABLE pointsman_object;
CREATE TABLE pointsman_object (
    tenant     TEXT NOT NULL,
    key        TEXT NOT NULL,
    last_event INTEGER NOT NULL,
    last_sent  BLOB NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;

ALTER TABLE pointsman_handler DROP COLUMN limiter_state;
ALTER TABLE pointsman_handler DROP COLUMN gaps;

DROP TABLE pointsman_order;
CREATE TABLE pointsman_order (
    n                 INTEGER PRIMARY KEY,
    key               TEXT NOT NULL UNIQUE,
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
    origin            INTEGER,
    depth             INTEGER NOT NULL,
    step_succeeded    INTEGER NOT NULL DEFAULT 0,
    suspended_by_task INTEGER
);
CREATE INDEX pointsman_order_chain ON pointsman_order (chain);
CREATE INDEX pointsman_order_node ON pointsman_order (chain, node);

DROP TABLE pointsman_ended_order;


-- Turns the initial layout into an older one, for the tests of migrations: the counters are one row that every commit
-- updates, order ids are unique among all tenants, ended orders are deleted, and objects do not expire.

DROP VIEW pointsman.events, pointsman.sequencer;
DROP TABLE pointsman.turn, pointsman.version, pointsman.ended_order;
DROP FUNCTION pointsman.frame_types;

CREATE TABLE pointsman.sequencer (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    version    bigint   NOT NULL DEFAULT 0,
    registry   bigint   NOT NULL DEFAULT 0,
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
) WITH (fillfactor = 10, vacuum_truncate = off, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
INSERT INTO pointsman.sequencer DEFAULT VALUES;

ALTER TABLE pointsman.object
    DROP COLUMN checked,
    ALTER COLUMN tenant TYPE text,
    ALTER COLUMN key TYPE text;
ALTER TABLE pointsman.idempotency ALTER COLUMN tenant TYPE text, ALTER COLUMN key TYPE text;
ALTER TABLE pointsman.orders
    DROP CONSTRAINT orders_key_tenant_key,
    DROP COLUMN took_on_error,
    ALTER COLUMN tenant TYPE text,
    ADD CONSTRAINT orders_key_key UNIQUE (key);

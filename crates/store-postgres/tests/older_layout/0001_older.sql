
-- Turns the initial layout into an older one, for the tests of migrations: the counters are one row that every commit
-- updates, order ids are unique among all tenants, ended orders are deleted, and objects do not expire.

DROP VIEW pointsman.events, pointsman.last_commit;
DROP TABLE pointsman.write_lock, pointsman.commit_version, pointsman.ended_order;
DROP FUNCTION pointsman.stream_frame_types;

CREATE TABLE pointsman.counters (
    singleton              boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    version                bigint   NOT NULL DEFAULT 0,
    registry_version       bigint   NOT NULL DEFAULT 0,
    last_event             bigint   NOT NULL DEFAULT 0,
    expired_up_to          bigint   NOT NULL DEFAULT 0,
    last_task              bigint   NOT NULL DEFAULT 0,
    last_fence             bigint   NOT NULL DEFAULT 0,
    last_object            bigint   NOT NULL DEFAULT 0,
    last_order             bigint   NOT NULL DEFAULT 0,
    journaled_events       bigint   NOT NULL DEFAULT 0,
    archived_tasks         bigint   NOT NULL DEFAULT 0,
    last_archive_number    bigint   NOT NULL DEFAULT 0,
    expired_archive_number bigint   NOT NULL DEFAULT 0,
    expired_event_number   bigint   NOT NULL DEFAULT 0,
    journal_end            bigint   NOT NULL DEFAULT 0,
    history_end            bigint   NOT NULL DEFAULT 0,
    next_due               bigint
) WITH (fillfactor = 10, vacuum_truncate = off, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
INSERT INTO pointsman.counters DEFAULT VALUES;

ALTER TABLE pointsman.object
    DROP COLUMN checked,
    ALTER COLUMN tenant TYPE text,
    ALTER COLUMN key TYPE text;
ALTER TABLE pointsman.idempotency_record ALTER COLUMN tenant TYPE text, ALTER COLUMN key TYPE text;
ALTER TABLE pointsman.orders
    DROP CONSTRAINT orders_key_tenant_key,
    DROP COLUMN took_on_error,
    ALTER COLUMN tenant TYPE text,
    ADD CONSTRAINT orders_key_key UNIQUE (key);

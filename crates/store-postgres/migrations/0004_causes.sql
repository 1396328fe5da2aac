-- What made an event in the outbox be emitted. Only the store itself says so, for programs that emit while they handle
-- another event; `pointsman.emit` knows nothing of it.
ALTER TABLE pointsman.outbox
    ADD COLUMN cause_event bigint,
    ADD COLUMN cause_task  bigint,
    ADD COLUMN cause_depth integer;

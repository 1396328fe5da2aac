-- Counts the events in the outbox.
SELECT count(*) FROM pointsman.outbox

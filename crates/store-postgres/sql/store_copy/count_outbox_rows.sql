-- How many events stand in the outbox.
SELECT count(*) FROM pointsman.outbox

-- How many rows of the outbox were no events, and why the last was none.
SELECT count(*), coalesce((SELECT r.reason FROM pointsman.outbox_refused r ORDER BY r.n DESC LIMIT 1), '')
FROM pointsman.outbox_refused

-- Counts the refused rows of the outbox, and returns the reason of the last one.
SELECT count(*), coalesce((SELECT r.reason FROM pointsman.outbox_refused r ORDER BY r.n DESC LIMIT 1), '')
FROM pointsman.outbox_refused

-- Inserts receipts with their row numbers and events. A number exists already only if the sequence was reset, and the
-- older receipt is useless then.
INSERT INTO pointsman.receipt (n, receipt, event)
SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[])
ON CONFLICT (n) DO UPDATE SET receipt = excluded.receipt, event = excluded.event

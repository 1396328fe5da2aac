-- Notes which events receipts stand for: places, receipts, events. A place is there already only if the sequence was set
-- back, and the older receipt is of no use then.
INSERT INTO pointsman.receipt (n, receipt, event)
SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[])
ON CONFLICT (n) DO UPDATE SET receipt = excluded.receipt, event = excluded.event

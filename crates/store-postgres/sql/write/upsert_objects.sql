-- Writes the last event of objects. A new object counts as checked at its first event; other objects keep `checked`,
-- and with it their index entry. An object from a store copy may have the number 0, and gets its own number here.
INSERT INTO pointsman.object (tenant, key, number, last_event, last_sent, checked)
SELECT tenant, key, number, last_event, last_sent, last_event
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[]) AS new (tenant, key, number, last_event,
                                                                                     last_sent)
ON CONFLICT (tenant, key) DO UPDATE
SET number = excluded.number, last_event = excluded.last_event, last_sent = excluded.last_sent

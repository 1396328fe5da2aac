-- Writes the last event of objects. A new object is checked at its first event; `checked` of others stays, and with it
-- their entry in the index. An object from a store copy may have had number 0: it gets its number now.
INSERT INTO pointsman.object (tenant, key, number, last_event, last_sent, checked)
SELECT tenant, key, number, last_event, last_sent, last_event
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[]) AS new (tenant, key, number, last_event,
                                                                                     last_sent)
ON CONFLICT (tenant, key) DO UPDATE
SET number = excluded.number, last_event = excluded.last_event, last_sent = excluded.last_sent

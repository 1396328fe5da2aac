-- Appends events to the journal.
INSERT INTO pointsman.journal
       (number, id, prev, type, key, sub, tenant, value, context, cause_event, cause_task, depth, first_task, tasks)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
                     $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::integer[], $13::bigint[], $14::integer[])

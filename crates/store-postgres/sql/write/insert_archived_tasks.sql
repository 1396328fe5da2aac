-- Inserts archived tasks.
INSERT INTO pointsman.history
       (n, seq, queue, event, type, key, status, reason, sync, stage, priority, attempt, retries, crashes, late,
        has_lane, prev_sent, planned, created, started, finished, error, result)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::smallint[],
                     $8::smallint[], $9::boolean[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],
                     $14::bigint[], $15::boolean[], $16::boolean[], $17::bigint[], $18::bigint[], $19::bigint[],
                     $20::bigint[], $21::bigint[], $22::text[], $23::text[])

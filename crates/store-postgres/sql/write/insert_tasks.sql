-- Inserts active tasks.
INSERT INTO pointsman.task
       (seq, queue, event, order_number, phase, lane, lane_position, concurrency_group, key_bucket, sync, stage,
        priority, score, rank, due, attempt, retries, crashes, late, node, fence, leased_until, started, prev_sent,
        planned, created, reason, error)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::bigint[], $7::bigint[],
                     $8::bigint[], $9::integer[], $10::boolean[], $11::bigint[], $12::bigint[], $13::bigint[],
                     $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::boolean[],
                     $20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[],
                     $26::bigint[], $27::smallint[], $28::text[])

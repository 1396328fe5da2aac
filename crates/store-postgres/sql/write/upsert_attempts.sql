-- Inserts attempts, replacing existing ones.
WITH new_attempts AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::text[])
           AS u (task, number, started, ended, outcome, error)
), replaced AS (
    DELETE FROM pointsman.attempt a USING new_attempts
    WHERE a.task = ANY (ARRAY[new_attempts.task]) AND a.number = new_attempts.number
)
INSERT INTO pointsman.attempt (partition_key, task, number, started, ended, outcome, error)
SELECT $7, task, number, started, ended, outcome, error FROM new_attempts

-- Attempts that did not succeed.

-- name: list_last_attempts
-- The last $2 attempts of each of these tasks.
SELECT a.task, a.number, a.started, a.ended, a.outcome, a.error
FROM unnest($1) AS requested (task)
CROSS JOIN LATERAL (SELECT * FROM pointsman.attempt a WHERE a.task = requested.task ORDER BY a.number DESC LIMIT $2) a
ORDER BY a.task, a.number

-- name: list_attempt_outcomes
-- The outcomes of a task's attempts.
SELECT outcome FROM pointsman.attempt WHERE task = $1

-- name: upsert_attempts
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

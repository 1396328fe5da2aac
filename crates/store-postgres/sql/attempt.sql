-- Attempts that did not succeed.

-- name: list_last_attempts
-- The last $2 attempts of each of these tasks.
SELECT a.:attempt_columns
FROM unnest($1) AS requested (task)
CROSS JOIN LATERAL (SELECT * FROM pointsman.attempt a WHERE a.task = requested.task ORDER BY a.number DESC LIMIT $2) a
ORDER BY a.task, a.number

-- name: list_attempt_outcomes
-- The outcomes of a task's attempts.
SELECT outcome FROM pointsman.attempt WHERE task = $1

-- name: upsert_attempts
-- Inserts attempts, replacing existing ones.
WITH new_attempts AS (
    SELECT $1 AS partition_key, u.* FROM unnest(:attempt_arrays) AS u (:attempt_columns)
), replaced AS (
    DELETE FROM pointsman.attempt a USING new_attempts
    WHERE a.task = ANY (ARRAY[new_attempts.task]) AND a.number = new_attempts.number
)
INSERT INTO pointsman.attempt (partition_key, :attempt_columns) SELECT * FROM new_attempts

-- The last $2 attempts of each of these tasks.
SELECT a.task, a.number, a.started, a.ended, a.outcome, a.error
FROM unnest($1) AS requested (task)
CROSS JOIN LATERAL (SELECT * FROM pointsman.attempt a WHERE a.task = requested.task ORDER BY a.number DESC LIMIT $2) a
ORDER BY a.task, a.number

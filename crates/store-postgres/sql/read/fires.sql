-- At most $3 rows of a schedule's ledger, planned before $2, the latest first.
SELECT planned, at, outcome, event, task
FROM pointsman.fire
WHERE schedule = $1 AND planned < $2
ORDER BY planned DESC
LIMIT $3

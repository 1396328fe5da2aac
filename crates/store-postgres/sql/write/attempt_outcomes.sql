-- The outcomes of a task's attempts.
SELECT outcome FROM pointsman.attempt WHERE task = $1

-- An archived task.
SELECT seq, queue, event, type, key, status, reason, sync, stage, priority, attempt, retries, crashes, late, has_lane,
       prev_sent, planned, created, started, finished, error, result
FROM pointsman.history WHERE seq = $1 AND n > $2

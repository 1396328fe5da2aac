-- An active task.
SELECT seq, queue, event, ord, phase, lane, place, crowd, bucket, sync, stage, priority, score, rank, due, attempt, retries,
       crashes, late, node, fence, until, started, prev_sent, planned, created, reason, error
FROM pointsman.task WHERE seq = $1

-- Locked tasks of pull workers, claimed since $2, whose leases have expired.
SELECT seq, queue, event, ord, phase, lane, place, crowd, bucket, sync, stage, priority, score, rank, due, attempt, retries,
       crashes, late, node, fence, until, started, prev_sent, planned, created, reason, error
FROM pointsman.task WHERE until < $1 AND started >= $2 AND phase = 5 ORDER BY until

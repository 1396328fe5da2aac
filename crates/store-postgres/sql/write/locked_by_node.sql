-- What a node holds locked, by age.
SELECT seq, queue, event, ord, phase, lane, place, crowd, bucket, sync, stage, priority, score, rank, due, attempt, retries,
       crashes, late, node, fence, until, started, prev_sent, planned, created, reason, error
FROM pointsman.task WHERE phase = 5 AND node = $1 ORDER BY seq

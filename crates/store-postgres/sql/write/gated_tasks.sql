-- Tasks of an event that wait for its synchronous tasks.
SELECT seq, queue, bucket, crowd, score, due, lane, place, stage FROM pointsman.task
WHERE phase = 1 AND event = $1 ORDER BY stage, seq

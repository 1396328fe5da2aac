-- Tasks of an event that wait for its synchronous tasks.
SELECT seq, queue, key_bucket, concurrency_group, score, due, lane, lane_position, stage FROM pointsman.task
WHERE phase = 1 AND event = $1 ORDER BY stage, seq

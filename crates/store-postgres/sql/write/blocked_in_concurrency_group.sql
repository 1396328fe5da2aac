-- The oldest blocked task of a concurrency group.
SELECT seq, queue, key_bucket, concurrency_group, score, due FROM pointsman.task
WHERE concurrency_group = $1 AND phase = 0 ORDER BY seq LIMIT 1

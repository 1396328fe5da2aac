-- Delayed tasks that are due, the earliest first.
SELECT seq, queue, key_bucket, concurrency_group, score, due FROM pointsman.task
WHERE phase = 2 AND due <= $1 ORDER BY due LIMIT $2

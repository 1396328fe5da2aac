-- Delayed tasks that are due, the earliest first.
SELECT seq, queue, bucket, crowd, score, due FROM pointsman.task WHERE phase = 2 AND due <= $1 ORDER BY due LIMIT $2

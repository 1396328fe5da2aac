-- The oldest blocked task of a concurrency group.
SELECT seq, queue, bucket, crowd, score, due FROM pointsman.task WHERE crowd = $1 AND phase = 0 ORDER BY seq LIMIT 1

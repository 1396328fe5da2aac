-- The oldest of a crowd that waits for its turn.
SELECT seq, queue, bucket, crowd, score, due FROM pointsman.task WHERE crowd = $1 AND phase = 0 ORDER BY seq LIMIT 1

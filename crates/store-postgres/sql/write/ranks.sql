-- For each score and bucket of a queue's ready tasks, the least and the greatest rank.
SELECT score, key_bucket, min(rank), max(rank) FROM pointsman.task
WHERE phase = 3 AND queue = $1 GROUP BY score, key_bucket

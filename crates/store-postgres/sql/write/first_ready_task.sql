-- The next ready task of a queue.
SELECT score, seq FROM pointsman.task WHERE phase = 3 AND queue = $1 ORDER BY queue, score DESC, rank, seq LIMIT 1

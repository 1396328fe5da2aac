-- Counts the ready tasks of a queue that come before a task with this score, rank and number, up to $5.
SELECT count(*) FROM (
    SELECT 1 FROM pointsman.task
    WHERE phase = 3 AND queue = $1
      AND (score > $2 OR score = $2 AND (rank < $3 OR rank = $3 AND seq < $4))
    ORDER BY queue, score DESC, rank, seq LIMIT $5
) AS ahead

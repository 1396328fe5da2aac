-- A queue's tasks that are parked as missing, the oldest first.
SELECT seq FROM pointsman.task WHERE phase = 7 AND queue = $1 ORDER BY queue, seq LIMIT $2

-- A queue's scheduled tasks, which are few, the oldest first.
SELECT seq FROM pointsman.task WHERE phase = 4 AND queue = $1 ORDER BY seq LIMIT $2

-- A queue's scheduled tasks, the oldest first. Scheduled tasks are few in all queues together.
SELECT seq FROM pointsman.task WHERE phase = 4 AND queue = $1 ORDER BY seq LIMIT $2

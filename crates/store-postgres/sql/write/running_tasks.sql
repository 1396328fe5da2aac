-- Locked tasks of a handler, at most $2.
SELECT t.seq FROM pointsman.task t JOIN pointsman.queue q ON q.id = t.queue
WHERE t.phase = 5 AND q.handler = $1 LIMIT $2

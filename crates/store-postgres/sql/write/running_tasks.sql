-- Some locked tasks of a handler.
SELECT t.seq FROM pointsman.task t JOIN pointsman.queue q ON q.id = t.queue
WHERE t.phase = 5 AND q.handler = $1 LIMIT $2

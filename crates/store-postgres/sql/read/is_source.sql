-- Whether all queues of a handler are those of a source.
SELECT coalesce(bool_and(q.collection <> '' AND q.collection NOT LIKE '/%'), false)
FROM pointsman.queue q
JOIN pointsman.handler h ON h.id = q.handler
WHERE h.name = $1

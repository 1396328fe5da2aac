-- Whether a handler is a source, and nothing else.
SELECT coalesce(bool_and(q.collection <> '' AND q.collection NOT LIKE '/%'), false)
FROM pointsman.queue q
JOIN pointsman.handler h ON h.id = q.handler
WHERE h.name = $1

-- Events between two ids that have late unfinished tasks.
SELECT DISTINCT event FROM pointsman.task WHERE late AND event > $1 AND event <= $2 ORDER BY event LIMIT $3

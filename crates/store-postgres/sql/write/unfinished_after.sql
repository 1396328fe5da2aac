-- Unfinished tasks behind a number, and the events of those that are not late.
SELECT seq, CASE WHEN late THEN NULL ELSE event END FROM pointsman.task WHERE seq > $1 ORDER BY seq LIMIT $2

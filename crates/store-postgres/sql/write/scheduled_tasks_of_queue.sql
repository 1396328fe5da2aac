-- A queue's scheduled tasks, which are few, by age.
SELECT seq FROM pointsman.task WHERE phase = 4 AND queue = $1 ORDER BY seq LIMIT $2

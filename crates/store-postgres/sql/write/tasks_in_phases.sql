-- A queue's tasks in these phases, the oldest first. For rare operations on a whole queue: it scans all tasks.
SELECT seq FROM pointsman.task WHERE queue = $1 AND phase = ANY ($2) ORDER BY seq LIMIT $3

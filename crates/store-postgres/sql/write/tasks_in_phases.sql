-- A queue's tasks in these phases, by age. For what is rare and concerns a whole queue: it looks at all tasks there are.
SELECT seq FROM pointsman.task WHERE queue = $1 AND phase = ANY ($2) ORDER BY seq LIMIT $3

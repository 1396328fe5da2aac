-- A queue's tasks in these phases, by age.
SELECT seq FROM pointsman.task WHERE queue = $1 AND phase = ANY ($2) ORDER BY seq LIMIT $3

-- A queue's unfinished tasks with what their scores are computed from.
SELECT seq, priority, created FROM pointsman.task WHERE queue = $1

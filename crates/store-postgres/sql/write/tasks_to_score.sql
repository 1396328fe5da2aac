-- A queue's active tasks, to compute their scores again.
SELECT seq, priority, created FROM pointsman.task WHERE queue = $1

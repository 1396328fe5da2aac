-- A queue's unfinished tasks, to be put in order anew.
SELECT seq, priority, created FROM pointsman.task WHERE queue = $1

-- Deletes retained log lines of tasks that have expired since.
DELETE FROM pointsman.log_retained l
WHERE NOT EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq = l.task)
  AND NOT EXISTS (SELECT 1 FROM pointsman.history h WHERE h.seq = l.task AND h.n > $1)

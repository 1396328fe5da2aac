-- Deletes retained attempts of tasks that have expired since.
DELETE FROM pointsman.attempt_retained a
WHERE NOT EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq = a.task)
  AND NOT EXISTS (SELECT 1 FROM pointsman.history h WHERE h.seq = a.task AND h.n > $1)

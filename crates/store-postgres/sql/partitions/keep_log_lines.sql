-- Moves log lines of tasks that outlive their partition to the partition of kept rows.
UPDATE pointsman.log l SET era = -1
WHERE l.era >= 0 AND l.era < $1
  AND (EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq = l.task)
       OR EXISTS (SELECT 1 FROM pointsman.history h WHERE h.seq = l.task AND h.n > $2))

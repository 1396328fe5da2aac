-- Moves attempts of tasks that outlive their partition to the partition of kept rows.
UPDATE pointsman.attempt a SET era = -1
WHERE a.era >= 0 AND a.era < $1
  AND (EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq = a.task)
       OR EXISTS (SELECT 1 FROM pointsman.history h WHERE h.seq = a.task AND h.n > $2))

-- Moves attempts of tasks that outlive their partition to the partition of retained rows.
UPDATE pointsman.attempt a SET partition_key = -1
WHERE a.partition_key >= 0 AND a.partition_key < $1
  AND (EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq = a.task)
       OR EXISTS (SELECT 1 FROM pointsman.history h WHERE h.seq = a.task AND h.n > $2))

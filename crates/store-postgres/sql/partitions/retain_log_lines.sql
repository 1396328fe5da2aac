-- Moves log lines of tasks that outlive their partition to the partition of retained rows.
UPDATE pointsman.log l SET partition_key = -1
WHERE l.partition_key >= 0 AND l.partition_key < $1
  AND (EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq = l.task)
       OR EXISTS (SELECT 1 FROM pointsman.history h WHERE h.seq = l.task AND h.n > $2))

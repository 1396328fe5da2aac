-- Moves events that active tasks need to the partition of retained rows, before theirs is dropped.
UPDATE pointsman.journal j SET number = -j.number
WHERE j.number >= 0 AND j.number < $1
  AND (EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq >= j.first_task AND t.seq < j.first_task + j.tasks)
       OR EXISTS (SELECT 1 FROM pointsman.task t WHERE t.late AND t.event = j.id))

-- Deletes retained events whose tasks have ended since.
DELETE FROM pointsman.journal_retained j
WHERE NOT EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq >= j.first_task AND t.seq < j.first_task + j.tasks)
  AND NOT EXISTS (SELECT 1 FROM pointsman.task t WHERE t.late AND t.event = j.id)

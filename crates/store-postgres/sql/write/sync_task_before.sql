-- The first active synchronous task of an event before a stage. With $3, only a task that is not
-- late and has no ended attempts except released ones (outcome 3).
SELECT t.seq FROM pointsman.journal j
JOIN pointsman.task t ON t.seq >= j.first_task AND t.seq < j.first_task + j.tasks
WHERE j.id = $1 AND t.sync AND t.stage < $2 AND t.phase <= 5
  AND (NOT $3 OR (NOT t.late AND NOT EXISTS (SELECT 1 FROM pointsman.attempt a WHERE a.task = t.seq
                                             AND a.outcome <> 3)))
ORDER BY t.stage LIMIT 1

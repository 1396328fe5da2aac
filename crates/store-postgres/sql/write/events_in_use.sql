-- At most $3 events after id $1 and up to $2, and whether unfinished tasks need each.
SELECT j.id, EXISTS (SELECT 1 FROM pointsman.task t WHERE t.seq >= j.first_task AND t.seq < j.first_task + j.tasks)
             OR EXISTS (SELECT 1 FROM pointsman.task t WHERE t.late AND t.event = j.id)
FROM pointsman.journal j WHERE j.id > $1 AND j.id <= $2 ORDER BY j.id LIMIT $3

-- Unfinished tasks of a schedule's last event, up to locked ones.
SELECT t.seq FROM pointsman.schedule s
JOIN pointsman.journal j ON j.id = s.last_event
JOIN pointsman.task t ON t.seq >= j.first_task AND t.seq < j.first_task + j.tasks
WHERE s.name = $1 AND t.phase <= 5 ORDER BY t.seq

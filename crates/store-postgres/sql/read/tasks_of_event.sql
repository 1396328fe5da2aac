-- Tasks of an event: those created when it was journaled, and replays. An expired event exists only as long as an
-- active task needs it.
SELECT created.seq
FROM pointsman.journal j, generate_series(j.first_task, j.first_task + j.tasks - 1) AS created (seq)
WHERE j.id = $1
  AND (j.id > (SELECT expired_up_to FROM pointsman.last_commit)
       OR EXISTS (SELECT FROM pointsman.task t WHERE t.seq >= j.first_task AND t.seq < j.first_task + j.tasks)
       OR EXISTS (SELECT FROM pointsman.task t WHERE t.late AND t.event = j.id))
UNION
SELECT t.seq FROM pointsman.task t WHERE t.late AND t.event = $1
UNION
SELECT p.seq FROM pointsman.history p
WHERE p.late AND p.event = $1 AND p.n > (SELECT expired_archive_number FROM pointsman.last_commit)

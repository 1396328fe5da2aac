-- Adds lines at the end of the logs of tasks. $3 counts a task's new lines from 1 on.
INSERT INTO pointsman.log (era, task, n, time, level, message)
SELECT $1, u.task, coalesce((SELECT l.n FROM pointsman.log l WHERE l.task = u.task ORDER BY l.n DESC LIMIT 1), -1) + u.line,
       u.time, u.level, u.message
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::text[]) AS u (task, line, time, level, message)

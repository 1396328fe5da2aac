-- Log lines of tasks.

-- name: list_log_lines
-- At most $3 lines of a task's log, from number $2 on; none after $4 bytes.
SELECT :log_line_columns
FROM (
    SELECT c.*, sum(octet_length(c.message)) OVER (ORDER BY c.n ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (SELECT * FROM pointsman.log WHERE task = $1 AND n >= $2 ORDER BY n LIMIT $3) c
) w
WHERE bytes - octet_length(message) < $4
ORDER BY n

-- name: append_log_lines
-- Appends lines to the logs of tasks. `n` counts a task's new lines from 1. The last line of a log is found once for
-- each task: finding it for each new line makes 10,000 lines of a task take 7 s instead of 0.1 s.
INSERT INTO pointsman.log (partition_key, task, n, time, level, message)
SELECT $1, task, max(ended) OVER (PARTITION BY task) + n, time, level, message
FROM (SELECT u.*, CASE n WHEN 1 THEN
                 coalesce((SELECT l.n FROM pointsman.log l WHERE l.task = u.task ORDER BY l.n DESC LIMIT 1), -1)
             END AS ended
      FROM unnest(:log_line_arrays) AS u (:log_line_columns)) lines

-- At most $3 lines of a task's log, from number $2 on; none after $4 bytes.
SELECT n, time, level, message
FROM (
    SELECT c.*, sum(octet_length(c.message)) OVER (ORDER BY c.n ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (SELECT * FROM pointsman.log WHERE task = $1 AND n >= $2 ORDER BY n LIMIT $3) c
) w
WHERE bytes - octet_length(message) < $4
ORDER BY n

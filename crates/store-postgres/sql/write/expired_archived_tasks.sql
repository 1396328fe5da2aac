-- The archived tasks that expire next, and which of them are too old.
SELECT n, finished < $3 FROM pointsman.history WHERE n > $1 AND n <= $2 ORDER BY n

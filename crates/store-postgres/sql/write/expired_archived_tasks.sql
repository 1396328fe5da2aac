-- The numbers of the archived tasks from $1 to $2, and whether each ended before $3.
SELECT n, finished < $3 FROM pointsman.history WHERE n > $1 AND n <= $2 ORDER BY n

-- Of the ended tasks that come next to be forgotten: how many there are, and which are too old.
SELECT n, finished < $3 FROM pointsman.history WHERE n > $1 AND n <= $2 ORDER BY n

-- The numbers of unfinished orders of chain $1 after order $2, at most $3.
SELECT n FROM pointsman.orders WHERE chain = $1 AND n > $2 ORDER BY n LIMIT $3

-- Orders of a chain after one of them.
SELECT n FROM pointsman.orders WHERE chain = $1 AND n > $2 ORDER BY n LIMIT $3

-- Adds a partition to a table.
SELECT pointsman.add_slice($1, $2, $3)

-- Adds a partition to a table.
SELECT pointsman.add_partition($1, $2, $3)

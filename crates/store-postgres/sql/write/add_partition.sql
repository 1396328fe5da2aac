-- Makes room for more rows of a table that is cut into slices.
SELECT pointsman.add_slice($1, $2, $3)

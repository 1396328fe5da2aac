-- A text by its name.
SELECT text FROM pointsman.meta WHERE name = $1

-- A text that is kept under a name.
SELECT text FROM pointsman.meta WHERE name = $1

-- A text of `pointsman.meta` by its name.
SELECT text FROM pointsman.meta WHERE name = $1

-- Those of a crowd that have their turn.
SELECT seq FROM pointsman.task WHERE crowd = $1 AND phase IN (3, 4, 5) LIMIT $2

-- Ready, scheduled and locked tasks of a concurrency group.
SELECT seq FROM pointsman.task WHERE concurrency_group = $1 AND phase IN (3, 4, 5) LIMIT $2

-- What a node can run.
UPDATE pointsman.node SET abilities = $2 WHERE id = $1

-- Sets the capabilities of a node.
UPDATE pointsman.node SET abilities = $2 WHERE id = $1

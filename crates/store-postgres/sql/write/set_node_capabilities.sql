-- Sets the capabilities of a node.
UPDATE pointsman.node SET capabilities = $2 WHERE id = $1

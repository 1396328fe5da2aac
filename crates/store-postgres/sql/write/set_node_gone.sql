-- A node has left, or is given up.
UPDATE pointsman.node SET gone = true WHERE id = $1

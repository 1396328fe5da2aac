-- Records that a node has left, or is declared dead.
UPDATE pointsman.node SET gone = true WHERE id = $1

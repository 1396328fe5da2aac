-- Sets the state of a chain.
UPDATE pointsman.chain SET state = $2 WHERE path = $1

-- How a chain is set.
UPDATE pointsman.chain SET state = $2 WHERE path = $1

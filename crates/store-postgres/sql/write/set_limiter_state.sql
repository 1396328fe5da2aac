-- How a handler has been going.
UPDATE pointsman.handler SET pace = $2 WHERE id = $1

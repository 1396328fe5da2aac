-- How far the orders of a changed chain have been looked at.
UPDATE pointsman.chain SET pending = $2 WHERE path = $1

-- Sets up to which order a changed chain is reconciled.
UPDATE pointsman.chain SET pending = $2 WHERE path = $1

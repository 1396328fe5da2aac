-- Sets up to which order a changed chain is reconciled.
UPDATE pointsman.chain SET reconciled_up_to = $2 WHERE path = $1

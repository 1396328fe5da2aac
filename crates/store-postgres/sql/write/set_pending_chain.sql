-- Sets the last order of a changed chain that was re-evaluated; NULL if all were.
UPDATE pointsman.chain SET reconciled_up_to = $2 WHERE path = $1

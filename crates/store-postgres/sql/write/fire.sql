-- The ledger row of a planned time.
SELECT planned, at, outcome, event, task FROM pointsman.fire WHERE schedule = $1 AND planned = $2

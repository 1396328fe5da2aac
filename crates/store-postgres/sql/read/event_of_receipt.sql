-- The id of the event of a receipt, if it has one.
SELECT pointsman.event_of($1)

-- The id of the event that a receipt stands for, if it has one.
SELECT pointsman.event_of($1)

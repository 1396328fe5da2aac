-- Deletes entries of the sparse index below this event, except the last one: it says how many events were before it.
DELETE FROM pointsman.mark WHERE number < (SELECT max(number) FROM pointsman.mark WHERE id <= $1)

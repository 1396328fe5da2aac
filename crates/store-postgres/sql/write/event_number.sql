-- The number of an event.
SELECT abs(number) FROM pointsman.journal WHERE id = $1

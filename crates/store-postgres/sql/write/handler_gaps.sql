-- In which stretches of the journal a handler was not there.
SELECT gaps FROM pointsman.handler WHERE id = $1

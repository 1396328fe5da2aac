-- In which stretches of the journal a handler was not there.
UPDATE pointsman.handler SET gaps = $2 WHERE id = $1

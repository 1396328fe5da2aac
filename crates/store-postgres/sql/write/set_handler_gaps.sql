-- Sets the ranges of the journal in which a handler was not defined.
UPDATE pointsman.handler SET gaps = $2 WHERE id = $1

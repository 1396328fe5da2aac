-- The ranges of the journal in which a handler was not defined.
SELECT gaps FROM pointsman.handler WHERE id = $1

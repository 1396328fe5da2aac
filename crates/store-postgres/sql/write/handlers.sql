-- All handlers that were ever registered.
SELECT id, def, defined, pace FROM pointsman.handler ORDER BY id

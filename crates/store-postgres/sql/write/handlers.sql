-- All handlers that were ever registered.
SELECT id, def, defined, limiter_state FROM pointsman.handler ORDER BY id

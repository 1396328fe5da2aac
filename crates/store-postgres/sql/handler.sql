-- Handlers, and the state of their limiters.

-- name: list_handlers
-- All handlers that were ever registered.
SELECT id, def, defined, limiter_state FROM pointsman.handler ORDER BY id

-- name: list_limiter_states
-- Rate limiter and circuit breaker states of these handlers.
SELECT id, limiter_state FROM pointsman.handler WHERE id = ANY ($1)

-- name: read_missed_event_ranges_json
-- The ranges of the journal in which a handler was not defined.
SELECT gaps FROM pointsman.handler WHERE id = $1

-- name: mark_handlers_undefined
-- Marks all handlers as undefined, until the defined ones are written.
UPDATE pointsman.handler SET defined = false WHERE defined

-- name: upsert_handler
-- Defines a handler. A new one gets the next number; numbers have no gaps.
INSERT INTO pointsman.handler (id, name, def, defined)
VALUES ((SELECT coalesce(max(id), 0) + 1 FROM pointsman.handler), $1, $2, true)
ON CONFLICT (name) DO UPDATE SET def = excluded.def, defined = true

-- name: write_limiter_state
-- Sets the rate limiter and circuit breaker state of a handler.
UPDATE pointsman.handler SET limiter_state = $2 WHERE id = $1

-- name: write_missed_event_ranges_json
-- Sets the ranges of the journal in which a handler was not defined.
UPDATE pointsman.handler SET gaps = $2 WHERE id = $1

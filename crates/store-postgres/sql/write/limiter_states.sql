-- Rate limiter and circuit breaker states of these handlers.
SELECT id, limiter_state FROM pointsman.handler WHERE id = ANY ($1)

-- Rate limiter and circuit breaker states of these handlers.
SELECT id, pace FROM pointsman.handler WHERE id = ANY ($1)

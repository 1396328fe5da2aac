-- Sets the rate limiter and circuit breaker state of a handler.
UPDATE pointsman.handler SET limiter_state = $2 WHERE id = $1

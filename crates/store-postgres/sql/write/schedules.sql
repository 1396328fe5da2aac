-- The progress of the schedules.
SELECT name, expression, resolved_up_to, next_catch_up, last_registered_at FROM pointsman.schedule

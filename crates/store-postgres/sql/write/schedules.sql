-- All schedules.
SELECT expression, resolved_up_to, next_catch_up, last_registered_at, last_event, name FROM pointsman.schedule

-- The progress of the schedules.
SELECT name, expression, settled, unmet, named FROM pointsman.schedule

-- Where the schedules stand.
SELECT name, expression, settled, unmet, named FROM pointsman.schedule

-- When the earliest of the delayed tasks falls due.
SELECT due FROM pointsman.task WHERE phase = 2 ORDER BY due LIMIT 1

-- The earliest due time of the delayed tasks.
SELECT due FROM pointsman.task WHERE phase = 2 ORDER BY due LIMIT 1

-- The first planned time of schedule $1 after $2 that has outcome $3.
SELECT planned FROM pointsman.fire WHERE schedule = $1 AND planned > $2 AND outcome = $3
ORDER BY schedule, planned LIMIT 1

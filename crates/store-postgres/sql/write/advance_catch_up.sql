-- Sets the next time of schedule $1 to catch up: the first planned time after $2 that a rule skipped ($3), if any.
UPDATE pointsman.schedule
SET next_catch_up = (SELECT min(planned) FROM pointsman.fire WHERE schedule = $1 AND planned > $2 AND outcome = $3)
WHERE name = $1

-- What was missed up to then needs no making up for; a rule that was set meanwhile may have skipped later times.
UPDATE pointsman.schedule
SET unmet = (SELECT min(planned) FROM pointsman.fire WHERE schedule = $1 AND planned > $2 AND outcome = $3)
WHERE name = $1

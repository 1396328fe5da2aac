-- Clears missed times up to then; a rule that was set meanwhile may have skipped later ones.
UPDATE pointsman.schedule
SET next_catch_up = (SELECT min(planned) FROM pointsman.fire WHERE schedule = $1 AND planned > $2 AND outcome = $3)
WHERE name = $1

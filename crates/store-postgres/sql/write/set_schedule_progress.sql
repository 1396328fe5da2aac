-- Advances the progress of a schedule to planned time $2; $3 is that time if it must be caught up later.
UPDATE pointsman.schedule
SET resolved_up_to = greatest(resolved_up_to, $2), next_catch_up = coalesce(next_catch_up, $3),
    last_event = coalesce($4, last_event)
WHERE name = $1

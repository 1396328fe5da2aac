-- Sets the candidate to $2, the last number at an earlier read, and the progress to $1. Every transaction with a number
-- up to the candidate had its transaction id before this one gets its own. A crashed server must not fall back behind a
-- candidate that was read, so this commit waits for the disk whatever is set.
UPDATE pointsman.outbox_progress
SET empty_up_to = $1, candidate = $2, candidate_xact = pg_current_xact_id()
WHERE set_config('synchronous_commit', 'on', true) IS NOT NULL

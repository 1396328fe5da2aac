-- Sets the mark to $2, which was the last number at an earlier look, and what is settled to $1. Whoever has a number up
-- to there had his transaction id before we get ours. A server that crashed must not go back behind a mark that was
-- seen, so this waits for the disk whatever is set.
UPDATE pointsman.outbox_mark
SET settled = $1, n = $2, xact = pg_current_xact_id()
WHERE set_config('synchronous_commit', 'on', true) IS NOT NULL

-- Wakes the other nodes. Sent beside the commits and not in them, because a NOTIFY in a commit lets no other commit
-- go on at the same time. Nobody need wait until it is on disk: what it tells of is.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('pointsman', $1)

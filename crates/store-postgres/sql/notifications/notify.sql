-- Notifies the other nodes. Sent outside of the commits, because a NOTIFY in a commit serializes it with other commits.
-- It does not wait for the disk: the commits that it announces are durable.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('pointsman', $1)

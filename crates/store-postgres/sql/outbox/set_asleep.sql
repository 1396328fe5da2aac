-- Sets the flag that the drainer sleeps: the next emit notifies. Nothing is lost with this commit, so it does not wait
-- for the disk.
SELECT set_config('synchronous_commit', 'off', true), setval('pointsman.drainer_state', 1)
FROM pointsman.drainer_state WHERE last_value <> 1

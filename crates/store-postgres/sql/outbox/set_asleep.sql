-- Says that nobody looks at the outbox now: the next one who emits rings. Nothing is lost with this commit, so that
-- nobody waits for the disk.
SELECT set_config('synchronous_commit', 'off', true), setval('pointsman.bell', 1)
FROM pointsman.bell WHERE last_value <> 1

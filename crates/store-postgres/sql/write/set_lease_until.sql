-- Extends the lease of a pull worker.
UPDATE pointsman.task SET leased_until = $2 WHERE seq = $1 AND leased_until IS NOT NULL

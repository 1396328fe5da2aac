-- Extends the lease of a pull worker.
UPDATE pointsman.task SET until = $2 WHERE seq = $1 AND until IS NOT NULL

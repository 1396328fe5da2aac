-- A worker's lease runs until then.
UPDATE pointsman.task SET until = $2 WHERE seq = $1 AND until IS NOT NULL

-- A queue's tasks without a lane that have an object: scheduled and locked ones first, then by age.
SELECT t.seq, t.queue, t.key_bucket, t.concurrency_group, t.score, t.due, t.phase, j.key
FROM pointsman.task t JOIN pointsman.journal j ON j.id = t.event
WHERE t.queue = $1 AND t.phase <= 5 AND t.lane IS NULL AND j.key IS NOT NULL
ORDER BY t.phase >= 4 DESC, t.seq

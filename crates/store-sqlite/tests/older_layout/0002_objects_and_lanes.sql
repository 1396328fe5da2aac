-- Numbers the objects, derives the numbers of lanes from them, and gives tasks a position in their lane.

ALTER TABLE pointsman_task ADD COLUMN lane_position INTEGER;
ALTER TABLE pointsman_task ADD COLUMN concurrency_group INTEGER;
UPDATE pointsman_task SET lane_position = seq WHERE lane IS NOT NULL;
DROP INDEX pointsman_task_lane;
CREATE INDEX pointsman_task_lane ON pointsman_task (lane, lane_position) WHERE lane_position IS NOT NULL;
CREATE INDEX pointsman_task_concurrency_group ON pointsman_task (concurrency_group, phase, seq)
WHERE concurrency_group IS NOT NULL;

ALTER TABLE pointsman_object ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pointsman_object ADD COLUMN checked INTEGER NOT NULL DEFAULT 0;
CREATE INDEX pointsman_object_retention_check ON pointsman_object (checked);
UPDATE pointsman_object SET number = counted.n
FROM (SELECT tenant, key, row_number() OVER (ORDER BY tenant, key) AS n FROM pointsman_object) AS counted
WHERE pointsman_object.tenant = counted.tenant AND pointsman_object.key = counted.key;
INSERT INTO pointsman_meta SELECT 'last_object', max(number) FROM pointsman_object HAVING max(number) IS NOT NULL;
UPDATE pointsman_task SET lane = numbered.lane
FROM (SELECT t.seq, o.number * 1048576 + q.handler % 1048576 AS lane
      FROM pointsman_task t
      JOIN pointsman_queue q ON q.id = t.queue
      JOIN pointsman_journal j ON j.id = t.event
      JOIN pointsman_object o ON o.tenant = j.tenant AND o.key = j.key
      WHERE t.lane IS NOT NULL) AS numbered
WHERE pointsman_task.seq = numbered.seq;

-- A handler that is not defined counts as having received all earlier events.
ALTER TABLE pointsman_handler ADD COLUMN limiter_state TEXT NOT NULL DEFAULT '';
ALTER TABLE pointsman_handler ADD COLUMN gaps TEXT NOT NULL DEFAULT '[]';
UPDATE pointsman_handler
SET gaps = '[[' || (1 + (SELECT coalesce(max(id), 0) FROM pointsman_journal)) || ',null]]' WHERE NOT defined;

-- Objects are numbered, and the numbers of lanes derive from these numbers (see objects.rs and lanes.rs). The lanes of
-- pairs of source and collection stay negative, as before.
ALTER TABLE pointsman_object ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
UPDATE pointsman_object SET number = counted.n
FROM (SELECT tenant, key, row_number() OVER (ORDER BY tenant, key) AS n FROM pointsman_object) AS counted
WHERE pointsman_object.tenant = counted.tenant AND pointsman_object.key = counted.key;
INSERT INTO pointsman_meta SELECT 'objects', max(number) FROM pointsman_object HAVING max(number) IS NOT NULL;

UPDATE pointsman_task SET lane = iif(lane IS NULL, NULL, of.number), crowd = iif(crowd IS NULL, NULL, of.number)
FROM (SELECT t.seq, o.number * 1048576 + q.handler % 1048576 AS number
      FROM pointsman_task t
      JOIN pointsman_queue q ON q.id = t.queue
      JOIN pointsman_journal j ON j.id = t.event
      JOIN pointsman_object o ON o.tenant = j.tenant AND o.key = j.key
      WHERE t.lane IS NOT NULL OR t.crowd IS NOT NULL) AS of
WHERE pointsman_task.seq = of.seq;
UPDATE pointsman_task SET lane = lane | -9223372036854775808 WHERE event IS NULL AND lane IS NOT NULL;

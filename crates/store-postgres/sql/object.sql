-- The objects (keys) that events are about.

-- name: read_object
-- An object by its key.
SELECT :object_columns FROM pointsman.object WHERE tenant = $1 AND key = $2

-- name: prefetch_objects_with_lane_heads
-- These objects, and the first two tasks of the lane of each: $3 has the lane that object 0 would have, or NULL; the
-- numbers of the lanes of two consecutive objects differ by $4.
SELECT w.i, o.number, o.last_event, o.last_sent, t.seq, t.queue, t.key_bucket, t.concurrency_group, t.score, t.due,
       t.lane_position, t.phase
FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w (tenant, key, first_lane, i)
CROSS JOIN LATERAL (SELECT * FROM pointsman.object WHERE tenant = w.tenant AND key = w.key LIMIT 1) o
LEFT JOIN LATERAL (
    SELECT seq, queue, key_bucket, concurrency_group, score, due, lane_position, phase FROM pointsman.task
    WHERE lane = o.number * $4 + w.first_lane AND lane_position IS NOT NULL
    ORDER BY lane, lane_position LIMIT 2
) t ON true
ORDER BY w.i, t.lane_position

-- name: read_last_event_of_object
-- The last event of an object.
SELECT last_event FROM pointsman.object WHERE tenant = $1 AND key = $2

-- name: list_idle_objects
-- Objects that retention last checked at or before the time of event $1, the longest unchecked first, at most $2.
SELECT :object_columns FROM pointsman.object WHERE checked <= $1 ORDER BY checked LIMIT $2

-- name: upsert_objects
-- Writes the last event of objects. An object that exists keeps `checked`, and with it its index entry. An object from
-- a store copy may have the number 0, and gets its own number here.
INSERT INTO pointsman.object (:object_columns) SELECT * FROM unnest(:object_arrays)
ON CONFLICT (tenant, key) DO UPDATE
SET number = excluded.number, last_event = excluded.last_event, last_sent = excluded.last_sent

-- name: mark_objects_in_use
-- Sets when retention checked objects. Each object is looked up by its key, because a join may scan all objects.
INSERT INTO pointsman.object (tenant, key, number, last_event, last_sent, checked)
SELECT o.tenant, o.key, o.number, o.last_event, o.last_sent, used.checked
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS used (tenant, key, checked)
CROSS JOIN LATERAL (SELECT * FROM pointsman.object WHERE tenant = used.tenant AND key = used.key LIMIT 1) o
ON CONFLICT (tenant, key) DO UPDATE SET checked = excluded.checked

-- name: mark_objects_of_events_in_use
-- Sets when retention checked the objects of events, except objects that were checked after $2. Each object is looked
-- up by its key, because a join may scan all objects.
INSERT INTO pointsman.object (tenant, key, number, last_event, last_sent, checked)
SELECT o.tenant, o.key, o.number, o.last_event, o.last_sent, $3
FROM (SELECT DISTINCT tenant, key FROM pointsman.journal WHERE id = ANY ($1) AND key IS NOT NULL) AS used
CROSS JOIN LATERAL (SELECT * FROM pointsman.object WHERE tenant = used.tenant AND key = used.key LIMIT 1) o
WHERE o.checked <= $2
ON CONFLICT (tenant, key) DO UPDATE SET checked = excluded.checked

-- name: delete_objects
-- Deletes objects. Each object is looked up by its key, because a join may scan all objects.
DELETE FROM pointsman.object WHERE ctid = ANY (ARRAY(
    SELECT o.row_id FROM unnest($1::text[], $2::text[]) AS unused (tenant, key)
    CROSS JOIN LATERAL (
        SELECT ctid AS row_id FROM pointsman.object WHERE tenant = unused.tenant AND key = unused.key LIMIT 1
    ) o))

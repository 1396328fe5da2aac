-- The counters of a store, in the columns that they have in all stores. The fifth is the number of expired events.
SELECT (SELECT text::bigint FROM pointsman.meta WHERE name = 'task_id_namespace'),
       (SELECT text::bigint FROM pointsman.meta WHERE name = 'salt'),
       greatest(coalesce((SELECT max(id) FROM pointsman.journal), 0), s.expired_up_to),
       s.expired_up_to,
       s.journaled_events - (SELECT count(*) FROM pointsman.journal j WHERE j.id > s.expired_up_to),
       s.journaled_events, s.last_task, s.last_fence, s.last_object, s.archived_tasks,
       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pointsman.node_id_seq)
FROM pointsman.last_commit s

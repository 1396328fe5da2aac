-- The counters of the store. Of events, only those count that have not expired.
SELECT (SELECT text::bigint FROM pointsman.meta WHERE name = 'realm'),
       (SELECT text::bigint FROM pointsman.meta WHERE name = 'salt'),
       greatest(coalesce((SELECT max(id) FROM pointsman.journal), 0), s.forgotten),
       s.forgotten,
       s.journaled - (SELECT count(*) FROM pointsman.journal j WHERE j.id > s.forgotten),
       s.journaled, s.tasks, s.fences, s.objects, s.ended,
       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pointsman.node_id_seq)
FROM pointsman.sequencer s

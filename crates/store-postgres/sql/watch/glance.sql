-- How far the journal has come, how many commits there were, how many nodes live, and a digest of the rules.
SELECT s.last_event, s.version, (SELECT count(*) FROM pointsman.node WHERE NOT gone),
       (SELECT coalesce(string_agg(concat_ws(' ', r.id, r.rule_type, r.canvas_id, r.handler_name, r.event_space), ','
                                   ORDER BY r.id), '')
        FROM pointsman.scheduling_rules r)
FROM pointsman.sequencer s

-- All rules, with author and reason. A rule may have been inserted manually, with any time, and for an unknown tenant:
-- such a rule applies to nothing yet.
SELECT r.rule_type::text, r.event_space, r.handler_name, t.name, coalesce(n.by, 'sql'), coalesce(n.reason, ''),
       (extract(epoch FROM least(greatest(r.created_at, timestamptz 'epoch'),
                                 timestamptz '9999-12-31 23:59:59.999999+00')) * 1000000)::bigint,
       r.canvas_id
FROM pointsman.scheduling_rules r
LEFT JOIN pointsman.tenant t ON t.canvas_id = r.canvas_id
LEFT JOIN pointsman.rule_author n ON n.rule = r.id
ORDER BY r.event_space, r.handler_name, t.name NULLS FIRST, r.rule_type, r.canvas_id

-- All rules, with who set them and why. Those for a tenant that nobody has heard of hold nothing.
SELECT r.rule_type::text, r.event_space, r.handler_name, t.name, coalesce(n.by, 'sql'), coalesce(n.reason, ''),
       (extract(epoch FROM r.created_at) * 1000000)::bigint
FROM pointsman.scheduling_rules r
LEFT JOIN pointsman.tenant t ON t.canvas_id = r.canvas_id
LEFT JOIN pointsman.rule_note n ON n.rule = r.id
WHERE t.name IS NOT NULL OR r.canvas_id = '00000000-0000-0000-0000-000000000000'
ORDER BY r.event_space, r.handler_name, t.name NULLS FIRST, r.rule_type

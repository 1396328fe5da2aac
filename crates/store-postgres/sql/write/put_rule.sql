-- Sets a rule; one that stands already gets the new time, name and reason.
WITH known AS (
    INSERT INTO pointsman.tenant (name, canvas_id) SELECT $3, $2 WHERE $3 IS NOT NULL ON CONFLICT (name) DO NOTHING
), rule AS (
    INSERT INTO pointsman.scheduling_rules (rule_type, canvas_id, handler_name, event_space, created_at)
    VALUES ($1::text::pointsman.scheduling_rule_type, $2, $4, $5, pointsman.at($6))
    ON CONFLICT (rule_type, canvas_id, handler_name, event_space) DO UPDATE SET created_at = excluded.created_at
    RETURNING id
)
INSERT INTO pointsman.rule_note (rule, by, reason) SELECT id, $7, $8 FROM rule
ON CONFLICT (rule) DO UPDATE SET by = excluded.by, reason = excluded.reason

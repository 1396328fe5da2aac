-- Sets a rule; an existing one gets the new time, author and reason. If a manually inserted rule has the next
-- number, the new rule gets the smallest free one.
WITH tenant_row AS (
    INSERT INTO pointsman.tenant (name, canvas_id) SELECT $3, $2 WHERE $3 IS NOT NULL ON CONFLICT (name) DO NOTHING
), number AS MATERIALIZED (
    SELECT CASE WHEN EXISTS (SELECT FROM pointsman.scheduling_rules WHERE id = next)
                THEN (SELECT min(free)
                      FROM generate_series(1, (SELECT count(*) + 1 FROM pointsman.scheduling_rules)) free
                      WHERE NOT EXISTS (SELECT FROM pointsman.scheduling_rules WHERE id = free))
                ELSE next END AS id
    FROM nextval('pointsman.scheduling_rules_id_seq') next
), rule AS (
    INSERT INTO pointsman.scheduling_rules (id, rule_type, canvas_id, handler_name, event_space, created_at)
    SELECT id, $1::text::pointsman.scheduling_rule_type, $2, $4, $5, pointsman.micros_to_timestamp($6) FROM number
    ON CONFLICT (rule_type, canvas_id, handler_name, event_space) DO UPDATE SET created_at = excluded.created_at
    RETURNING id
)
INSERT INTO pointsman.rule_author (rule, by, reason) SELECT id, $7, $8 FROM rule
ON CONFLICT (rule) DO UPDATE SET by = excluded.by, reason = excluded.reason

-- Rules, with their tenants and authors.

-- name: list_rules
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

-- name: write_rule
-- Sets a rule; an existing one gets the new time, author and reason. If a manually inserted rule has the next number,
-- the new rule gets the smallest free one.
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

-- name: insert_rule_of_unknown_tenant
-- Inserts a rule of a tenant that the store does not know yet: only its uuid is known.
INSERT INTO pointsman.scheduling_rules (rule_type, canvas_id, handler_name, event_space, created_at)
VALUES ($1::text::pointsman.scheduling_rule_type, $2, $3, $4, pointsman.micros_to_timestamp($5))

-- name: delete_rule
-- Deletes a rule.
DELETE FROM pointsman.scheduling_rules
WHERE rule_type = $1::text::pointsman.scheduling_rule_type AND canvas_id = $2 AND handler_name = $3 AND event_space = $4

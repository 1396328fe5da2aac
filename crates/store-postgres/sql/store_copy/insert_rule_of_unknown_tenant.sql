-- Inserts a rule of a tenant that the store does not know yet: only its uuid is known.
INSERT INTO pointsman.scheduling_rules (rule_type, canvas_id, handler_name, event_space, created_at)
VALUES ($1::text::pointsman.scheduling_rule_type, $2, $3, $4, pointsman.micros_to_timestamp($5))

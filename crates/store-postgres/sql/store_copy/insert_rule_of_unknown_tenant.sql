-- Sets a rule for a tenant that nobody has heard of yet: its uuid is all that is known of it.
INSERT INTO pointsman.scheduling_rules (rule_type, canvas_id, handler_name, event_space, created_at)
VALUES ($1::text::pointsman.scheduling_rule_type, $2, $3, $4, pointsman.at($5))

-- Deletes a rule.
DELETE FROM pointsman.scheduling_rules
WHERE rule_type = $1::text::pointsman.scheduling_rule_type AND canvas_id = $2 AND handler_name = $3 AND event_space = $4

-- How the last order of a tenant and key ended.
SELECT outcome, node, ended FROM pointsman.ended_order WHERE key = $1 AND tenant = $2

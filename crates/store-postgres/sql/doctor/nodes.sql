-- Nodes that have not left, each with the seconds since its last heartbeat, and whether it ran on another store that
-- was copied here: those have no heartbeat here.
SELECT name, (extract(epoch FROM clock_timestamp()) - last_heartbeat / 1000000.0)::float8, last_heartbeat = 0
FROM pointsman.node
WHERE NOT gone
ORDER BY last_heartbeat DESC

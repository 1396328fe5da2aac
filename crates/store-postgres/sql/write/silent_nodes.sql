-- Live nodes whose last heartbeat was before $1.
SELECT id FROM pointsman.node WHERE NOT gone AND last_heartbeat < $1

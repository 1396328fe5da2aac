-- What nodes learn from each other.

-- name: read_polled_state
-- The last event, the commit version, the number of live nodes, and a digest of the rules. A rule may name a tenant
-- before the store knows it.
SELECT s.last_event, s.version, (SELECT count(*) FROM pointsman.node WHERE NOT gone),
       (SELECT coalesce(string_agg(
                    concat_ws(' ', r.id, r.rule_type, r.canvas_id, r.handler_name, r.event_space, t.name), ','
                    ORDER BY r.id), '')
        FROM pointsman.scheduling_rules r LEFT JOIN pointsman.tenant t USING (canvas_id))
FROM pointsman.last_commit s

-- name: notify_nodes
-- Notifies the other nodes. Sent outside of the commits, because a NOTIFY in a commit serializes it with other commits.
-- It does not wait for the disk: the commits that it announces are durable.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('pointsman', $1)

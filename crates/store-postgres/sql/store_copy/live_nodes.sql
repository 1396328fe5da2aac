-- Nodes with a heartbeat within the last minute, by the server's clock.
SELECT name FROM pointsman.node
WHERE NOT gone AND last_heartbeat > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 60000000
ORDER BY id

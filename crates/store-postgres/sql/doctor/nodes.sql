-- The nodes that have not left, each with the seconds since it was last heard of.
SELECT name, (extract(epoch FROM clock_timestamp()) - heard / 1000000.0)::float8
FROM pointsman.node
WHERE NOT gone
ORDER BY heard DESC

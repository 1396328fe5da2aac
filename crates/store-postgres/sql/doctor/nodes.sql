-- The nodes that have not left, each with the seconds since it was last heard of, and whether it ran on another store that
-- was moved here: those were never heard of here.
SELECT name, (extract(epoch FROM clock_timestamp()) - heard / 1000000.0)::float8, heard = 0
FROM pointsman.node
WHERE NOT gone
ORDER BY heard DESC

-- Takes a moment.
SELECT pg_sleep(0.3)::text

-- Sleeps, for a test that cancels a read.
SELECT pg_sleep(0.3)::text

-- How many rows a test has written.
SELECT count(*) FROM seen

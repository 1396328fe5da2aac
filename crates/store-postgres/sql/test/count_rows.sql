-- Counts the rows that a test has written.
SELECT count(*) FROM seen

-- At most $2 of the things that people did, before number $1, the newest first.
SELECT n, at, by, action, what, detail FROM pointsman.deed WHERE n < $1 ORDER BY n DESC LIMIT $2

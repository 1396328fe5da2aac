-- These settings as they are for us, and where each comes from.
SELECT name, setting, source FROM pg_settings WHERE name = ANY($1)

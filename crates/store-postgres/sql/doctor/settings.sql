-- These settings as they apply to this session, with their sources.
SELECT name, setting, source FROM pg_settings WHERE name = ANY($1)

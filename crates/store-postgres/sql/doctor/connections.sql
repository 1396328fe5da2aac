-- How many connections there may be, less those that are kept for superusers; how many others have and how many our role
-- has to this database; and how many our role and this database may have, if less.
SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
           - coalesce(current_setting('reserved_connections', true)::bigint, 0),
       count(*) FILTER (WHERE NOT mine),
       count(*) FILTER (WHERE mine),
       (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)::bigint,
       (SELECT datconnlimit FROM pg_database WHERE datname = current_database())::bigint
FROM (SELECT usename = current_user AND datname = current_database() AS mine
      FROM pg_stat_activity
      WHERE usename IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend') a

-- The connection limit without the connections reserved for superusers; the connections of others, and of this role to
-- this database; and the limits of the role and of the database.
SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
           - coalesce(current_setting('reserved_connections', true)::bigint, 0),
       count(*) FILTER (WHERE NOT is_own),
       count(*) FILTER (WHERE is_own),
       (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)::bigint,
       (SELECT datconnlimit FROM pg_database WHERE datname = current_database())::bigint
FROM (SELECT usename = current_user AND datname = current_database() AS is_own
      FROM pg_stat_activity
      WHERE usename IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend') a

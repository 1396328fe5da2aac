-- Version, encoding and access mode of the server, and encryption of the connection. Through a pooler the latter is
-- that of the pooler's connection.
SELECT current_setting('server_version_num')::integer,
       current_setting('server_version'),
       current_setting('server_encoding'),
       pg_is_in_recovery(),
       current_setting('default_transaction_read_only')::boolean,
       coalesce((SELECT s.version FROM pg_stat_ssl s WHERE s.pid = pg_backend_pid() AND s.ssl), ''),
       coalesce(inet_client_addr() = inet_server_addr() OR inet_client_addr() <<= '127.0.0.0/8', true)

-- Identifies a running server and database.
SELECT concat_ws(' ', pg_postmaster_start_time(), oid) FROM pg_database WHERE datname = current_database()

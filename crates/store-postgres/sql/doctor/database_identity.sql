-- Tells one running server and database from all others.
SELECT concat_ws(' ', pg_postmaster_start_time(), oid) FROM pg_database WHERE datname = current_database()

-- The process id of the server's backend.
SELECT pg_backend_pid()

-- Which process of the server answers.
SELECT pg_backend_pid()

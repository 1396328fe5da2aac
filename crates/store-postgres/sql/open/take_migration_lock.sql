-- Takes the migration lock until the end of the transaction.
SELECT pg_advisory_xact_lock($1)

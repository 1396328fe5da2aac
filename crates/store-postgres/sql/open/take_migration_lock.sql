-- Lets one node at a time look at the layout and change it, until the end of its transaction.
SELECT pg_advisory_xact_lock($1)

-- The status of a transaction: committed, aborted, or in progress.
SELECT pg_xact_status($1::text::xid8)

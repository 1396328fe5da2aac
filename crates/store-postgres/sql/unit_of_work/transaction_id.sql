-- The id of this transaction, to check its status later; none if it has written nothing.
SELECT pg_current_xact_id_if_assigned()::text

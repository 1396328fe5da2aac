-- By which number it can be asked later whether this transaction was committed; none if it has changed nothing.
SELECT pg_current_xact_id_if_assigned()::text

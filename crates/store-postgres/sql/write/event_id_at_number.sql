-- The id of the last event in the sparse index up to a number.
SELECT id FROM pointsman.journal_sparse_index WHERE number <= $1 ORDER BY number DESC LIMIT 1

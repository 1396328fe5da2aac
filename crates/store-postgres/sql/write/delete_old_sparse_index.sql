-- Deletes entries of the sparse index up to event $1, except the last one, which says how many events came before.
DELETE FROM pointsman.journal_sparse_index
WHERE number < (SELECT max(number) FROM pointsman.journal_sparse_index WHERE id <= $1)

-- Deletes entries of the sparse index below this event, except the last one: it says how many events were before it.
DELETE FROM pointsman.journal_sparse_index
WHERE number < (SELECT max(number) FROM pointsman.journal_sparse_index WHERE id <= $1)

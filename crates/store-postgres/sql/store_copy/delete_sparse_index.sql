-- Deletes the sparse index of the journal.
DELETE FROM pointsman.journal_sparse_index

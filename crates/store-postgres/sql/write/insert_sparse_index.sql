-- Inserts entries into the sparse index of the journal.
INSERT INTO pointsman.journal_sparse_index (number, id) SELECT * FROM unnest($1::bigint[], $2::bigint[])

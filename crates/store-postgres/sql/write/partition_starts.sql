-- The first events of the journal's partitions: every thousandth event is in the sparse index, and partitions start
-- with one.
SELECT number, id FROM pointsman.journal_sparse_index WHERE number % $1 = 0 ORDER BY number

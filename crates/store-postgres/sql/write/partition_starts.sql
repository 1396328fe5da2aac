-- The first events of the journal's partitions of $1 rows. Each is in the sparse index, because the partition size is a
-- multiple of the interval of that index.
SELECT number, id FROM pointsman.journal_sparse_index WHERE number % $1 = 0 ORDER BY number

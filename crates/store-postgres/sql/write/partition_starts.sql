-- The first events of the slices of the journal: every thousandth event has a mark, and slices begin with one.
SELECT number, id FROM pointsman.mark WHERE number % $1 = 0 ORDER BY number

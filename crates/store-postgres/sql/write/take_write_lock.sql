-- Takes the write lock.
SELECT FROM pointsman.turn FOR UPDATE

-- Takes the write lock.
SELECT FROM pointsman.write_lock FOR UPDATE

-- Deletes an entry that is no longer in the configuration files.
DELETE FROM pointsman.file_digest WHERE key = $1

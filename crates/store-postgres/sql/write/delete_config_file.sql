-- Deletes an entry that is no longer in the configuration files.
DELETE FROM pointsman.file WHERE key = $1

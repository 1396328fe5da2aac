-- Deletes the digest of an object that is no longer configured in files.
DELETE FROM pointsman.file_digest WHERE key = $1

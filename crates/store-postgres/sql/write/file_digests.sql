-- Entries of the configuration files.
SELECT key, digest FROM pointsman.file_digest

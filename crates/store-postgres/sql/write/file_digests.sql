-- The digests of the objects that are configured in files.
SELECT key, digest FROM pointsman.file_digest

-- What is configured in files.
SELECT key, digest FROM pointsman.file

-- Digests of the objects that are configured in files.

-- name: list_configured_object_digests
-- The digests of the objects that are configured in files.
SELECT key, digest FROM pointsman.file_digest

-- name: write_configured_object_digest
-- Writes the digest of an object that is configured in files.
INSERT INTO pointsman.file_digest (key, digest) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET digest = excluded.digest

-- name: delete_configured_object_digest
-- Deletes the digest of an object that is no longer configured in files.
DELETE FROM pointsman.file_digest WHERE key = $1

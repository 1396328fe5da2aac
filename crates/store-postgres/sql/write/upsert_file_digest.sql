-- Writes the digest of an object that is configured in files.
INSERT INTO pointsman.file_digest (key, digest) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET digest = excluded.digest

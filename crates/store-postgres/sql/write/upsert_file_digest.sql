-- Inserts or updates an entry of the configuration files.
INSERT INTO pointsman.file_digest (key, digest) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET digest = excluded.digest

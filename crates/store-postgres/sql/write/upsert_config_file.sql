-- Something in the files is new or has changed.
INSERT INTO pointsman.file (key, digest) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET digest = excluded.digest

-- Begins a copy into this store. No row: another one has begun.
INSERT INTO pointsman.meta (name, text) VALUES ('move', $1) ON CONFLICT (name) DO NOTHING RETURNING 1

-- Inserts the first progress of a copy into this store. Returns no row if another copy has begun.
INSERT INTO pointsman.meta (name, text) VALUES ('move', $1) ON CONFLICT (name) DO NOTHING RETURNING 1

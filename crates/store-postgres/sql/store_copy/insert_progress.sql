-- A move to here begins. No row: somebody else has begun one.
INSERT INTO pointsman.meta (name, text) VALUES ('move', $1) ON CONFLICT (name) DO NOTHING RETURNING 1

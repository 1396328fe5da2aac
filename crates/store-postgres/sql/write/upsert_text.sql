-- Stores a text in `pointsman.meta` under a name.
INSERT INTO pointsman.meta (name, text) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET text = excluded.text

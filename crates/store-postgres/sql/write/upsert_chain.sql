-- Defines a chain. An existing one keeps its state.
INSERT INTO pointsman.chain (path, def, defined, state) VALUES ($1, $2, true, $3)
ON CONFLICT (path) DO UPDATE SET def = excluded.def, defined = true

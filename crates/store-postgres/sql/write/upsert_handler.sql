-- Defines a handler. A new one gets the next number; numbers have no gaps.
INSERT INTO pointsman.handler (id, name, def, defined)
VALUES ((SELECT coalesce(max(id), 0) + 1 FROM pointsman.handler), $1, $2, true)
ON CONFLICT (name) DO UPDATE SET def = excluded.def, defined = true

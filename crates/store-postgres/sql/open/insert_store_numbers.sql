-- The numbers that a store gets once: what the names of its tasks are made with, and its salt.
INSERT INTO pointsman.meta (name, text) VALUES ('realm', $1), ('salt', $2) ON CONFLICT (name) DO NOTHING

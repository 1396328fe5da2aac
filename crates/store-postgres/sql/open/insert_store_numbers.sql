-- Inserts the numbers that a store gets once: the namespace of its task ids, and its salt.
INSERT INTO pointsman.meta (name, text) VALUES ('task_id_namespace', $1), ('salt', $2) ON CONFLICT (name) DO NOTHING

-- Named texts of the store.

-- name: read_named_text
-- A text of `pointsman.meta` by its name.
SELECT text FROM pointsman.meta WHERE name = $1

-- name: read_task_id_namespace
-- The namespace of the public task ids.
SELECT text FROM pointsman.meta WHERE name = 'task_id_namespace'

-- name: write_named_text
-- Stores a text in `pointsman.meta` under a name.
INSERT INTO pointsman.meta (name, text) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET text = excluded.text

-- name: insert_store_numbers
-- Inserts the numbers that a store gets once: the namespace of its task ids, and its salt.
INSERT INTO pointsman.meta (name, text) VALUES ('task_id_namespace', $1), ('salt', $2) ON CONFLICT (name) DO NOTHING

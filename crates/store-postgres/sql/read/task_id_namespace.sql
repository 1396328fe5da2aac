-- The namespace of the public task ids.
SELECT text FROM pointsman.meta WHERE name = 'task_id_namespace'

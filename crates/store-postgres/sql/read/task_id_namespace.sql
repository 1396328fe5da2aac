-- The namespace of the task ids.
SELECT text FROM pointsman.meta WHERE name = 'task_id_namespace'

-- What the names of the tasks are made with.
SELECT text FROM pointsman.meta WHERE name = 'realm'

-- Something is no longer in the files.
DELETE FROM pointsman.file WHERE key = $1

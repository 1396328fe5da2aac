-- Nobody has had this schedule for a long time.
DELETE FROM pointsman.schedule WHERE name = $1

-- One mark stays behind: it says how many events there were before it.
DELETE FROM pointsman.mark WHERE number < (SELECT max(number) FROM pointsman.mark WHERE id <= $1)

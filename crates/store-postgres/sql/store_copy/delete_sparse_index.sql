-- Nothing is marked any more.
DELETE FROM pointsman.mark

-- Orders have come to their end.
DELETE FROM pointsman.orders WHERE n = ANY ($1)

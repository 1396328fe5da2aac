-- Deletes orders that have ended.
DELETE FROM pointsman.orders WHERE n = ANY ($1)

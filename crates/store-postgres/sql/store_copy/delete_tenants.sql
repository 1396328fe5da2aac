-- Deletes all tenants.
DELETE FROM pointsman.tenant

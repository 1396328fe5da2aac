-- Migrations that were applied to the schema.
SELECT version, name, checksum FROM pointsman.migration ORDER BY version

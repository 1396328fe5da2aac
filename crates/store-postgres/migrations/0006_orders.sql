-- Order ids are a tenant's own: orders of several tenants may have the same key. Lists are ordered by both, byte by byte.
ALTER TABLE pointsman.orders ALTER COLUMN tenant TYPE text COLLATE "C";
ALTER TABLE pointsman.orders
    DROP CONSTRAINT orders_key_key,
    ADD CONSTRAINT orders_key_tenant_key UNIQUE (key, tenant);

-- Order ids are a tenant's own: orders of several tenants may have the same key. Lists are ordered by both, byte by byte.
ALTER TABLE pointsman.orders ALTER COLUMN tenant TYPE text COLLATE "C";
ALTER TABLE pointsman.orders
    DROP CONSTRAINT orders_key_key,
    ADD CONSTRAINT orders_key_tenant_key UNIQUE (key, tenant);
-- A failed step led the order along an on_error.
ALTER TABLE pointsman.orders ADD COLUMN took_on_error boolean NOT NULL DEFAULT false;

-- How orders ended: their ids are remembered for a while, so that a repeated request does not run an order twice.
CREATE TABLE pointsman.ended_order (
    key     text   COLLATE "C" NOT NULL, -- /chain/path,id
    tenant  text   COLLATE "C" NOT NULL,
    outcome text   NOT NULL, -- finished, failed, removed
    node    text   NOT NULL,
    ended   bigint NOT NULL,
    PRIMARY KEY (key, tenant)
);
CREATE INDEX ended_order_age ON pointsman.ended_order (ended);

-- The table belongs to the owner of the schema like the others, whichever role applies this migration.
DO $$
DECLARE
    owner name := (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'pointsman');
BEGIN
    EXECUTE format('ALTER TABLE pointsman.ended_order OWNER TO %I', owner);
END $$;

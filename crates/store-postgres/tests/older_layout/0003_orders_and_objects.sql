-- Order ids become unique per tenant.
ALTER TABLE pointsman.orders ALTER COLUMN tenant TYPE text COLLATE "C";
ALTER TABLE pointsman.orders
    DROP CONSTRAINT orders_key_key,
    ADD CONSTRAINT orders_key_tenant_key UNIQUE (key, tenant);
-- A failed step led the order along an on_error.
ALTER TABLE pointsman.orders ADD COLUMN took_on_error boolean NOT NULL DEFAULT false;

-- Ended orders: their ids are kept for a while.
CREATE TABLE pointsman.ended_order (
    key     text   COLLATE "C" NOT NULL, -- /chain/path,id
    tenant  text   COLLATE "C" NOT NULL,
    outcome text   NOT NULL, -- finished, failed, removed
    node    text   NOT NULL,
    ended   bigint NOT NULL,
    PRIMARY KEY (key, tenant)
);
CREATE INDEX ended_order_age ON pointsman.ended_order (ended);

-- Objects expire.
ALTER TABLE pointsman.object ADD COLUMN checked bigint NOT NULL DEFAULT 0;
CREATE INDEX object_last_found_in_use ON pointsman.object (checked);

CREATE FUNCTION pointsman.stream_frame_types() RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT ARRAY['Torn', 'task']
$$;
REVOKE ALL ON FUNCTION pointsman.stream_frame_types FROM PUBLIC;

-- The objects belong to the owner of the schema like the others, whichever role applies this migration.
DO $$
DECLARE
    owner name := (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'pointsman');
BEGIN
    EXECUTE format('ALTER TABLE pointsman.ended_order OWNER TO %I', owner);
    EXECUTE format('ALTER FUNCTION pointsman.stream_frame_types() OWNER TO %I', owner);
END $$;

-- Refuses the types that readers of the event stream would take for its own frames. Types below them are allowed.

-- The names of the event stream's own frames.
CREATE FUNCTION pointsman.frame_types() RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT ARRAY['Torn', 'task']
$$;
REVOKE ALL ON FUNCTION pointsman.frame_types FROM PUBLIC;

-- The function belongs to the owner of the schema like the others, whichever role applies this migration.
DO $$
DECLARE
    owner name := (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'pointsman');
BEGIN
    EXECUTE format('ALTER FUNCTION pointsman.frame_types() OWNER TO %I', owner);
END $$;

-- Says what is wrong with a type.
CREATE OR REPLACE FUNCTION pointsman.refuse_type(type text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    segment text;
    bad     text;
BEGIN
    IF type IS NULL THEN
        PERFORM pointsman.refuse('type', 'an event has a type');
    ELSIF octet_length(type) NOT BETWEEN 1 AND 255 THEN
        PERFORM pointsman.refuse('type', format('a type has 1 to 255 bytes, this one has %s', octet_length(type)));
    END IF;
    FOREACH segment IN ARRAY string_to_array(type, '.') LOOP
        bad := substring(segment COLLATE "C" FROM '[^A-Za-z0-9_-]');
        IF segment = '' THEN
            PERFORM pointsman.refuse('type', pointsman.shown(type, '"') || ' has an empty segment between its dots');
        ELSIF bad IS NOT NULL THEN
            PERFORM pointsman.refuse('type', format(
                '%s contains %s; a type is made of letters, digits, `_`, `-` and dots',
                pointsman.shown(type, '"'), pointsman.shown(bad, '''')));
        END IF;
    END LOOP;
    IF type COLLATE "C" = ANY (pointsman.frame_types()) THEN
        PERFORM pointsman.refuse('type', format(
            '%1$s is the name of a frame of the event stream; use another type, such as %1$s.changed', type));
    END IF;
    PERFORM pointsman.refuse('type', 'only the engine itself emits ' || type);
END $$;

-- Emits an event if and when the transaction commits. Answers with a receipt. NULL is the same as leaving an argument
-- out. Whatever is wrong with the event is an error here, and nothing is stored.
CREATE OR REPLACE FUNCTION pointsman.emit(
    type            text,
    key             text     DEFAULT NULL,
    value           jsonb    DEFAULT 'null',
    context         jsonb    DEFAULT '{}',
    tenant          text     DEFAULT 'default',
    delay           interval DEFAULT NULL,
    priority        integer  DEFAULT 100,
    idempotency_key text     DEFAULT NULL,
    sub             text     DEFAULT NULL
) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pointsman, pg_temp AS $$
DECLARE
    body   text := coalesce(value, 'null')::text;
    at     timestamp := clock_timestamp() AT TIME ZONE 'UTC';
    at_us  bigint := extract(epoch FROM at) * 1000000;
    due_us bigint;
    n      bigint;
    ticket uuid;
    taken  uuid;
    digest bytea;
BEGIN
    tenant := coalesce(tenant, 'default');
    priority := coalesce(priority, 100);
    context := nullif(context, '{}');
    IF NOT coalesce(octet_length(type) <= 255 AND type COLLATE "C" ~ '^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*$'
                    AND split_part(type, '.', 1) COLLATE "C" <> ALL (pointsman.reserved_types())
                    AND type COLLATE "C" <> ALL (pointsman.frame_types()), false) THEN
        PERFORM pointsman.refuse_type(type);
    END IF;
    IF tenant COLLATE "C" !~ '^[A-Za-z0-9._-]{1,128}$' THEN
        PERFORM pointsman.refuse_tenant(tenant);
    END IF;
    IF octet_length(key) NOT BETWEEN 1 AND 512 OR key COLLATE "C" ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' THEN
        PERFORM pointsman.refuse_key('key', key);
    END IF;
    IF octet_length(sub) NOT BETWEEN 1 AND 512 OR sub COLLATE "C" ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' THEN
        PERFORM pointsman.refuse_key('sub', sub);
    END IF;
    -- Shorter ones are neither too deep nor do they hold such numbers.
    IF octet_length(body) > 200 THEN
        PERFORM pointsman.check_value(value, body);
    END IF;
    IF context IS NOT NULL THEN
        PERFORM pointsman.check_context(context);
    END IF;
    IF delay NOT BETWEEN interval '0' AND interval '36600 days' THEN
        PERFORM pointsman.refuse('delay', format('a delay is from 0 to 36600 days, this one is %s', delay));
    END IF;
    IF priority NOT BETWEEN 1 AND 9000 THEN
        PERFORM pointsman.refuse('priority', format('a priority is a whole number from 1 to 9000, not %s', priority));
    END IF;
    IF idempotency_key COLLATE "C" !~ '^[ -~]{1,255}$' THEN
        PERFORM pointsman.refuse('idempotency_key', 'an idempotency key has 1 to 255 printable ASCII characters');
    END IF;

    n := pointsman.take_number();
    -- Random, but for its version and for the number at its end, by which it is found again.
    ticket := overlay(left(gen_random_uuid()::text, 24) PLACING '8' FROM 15) || lpad(to_hex(n), 12, '0');
    due_us := extract(epoch FROM at + delay) * 1000000;
    IF idempotency_key IS NOT NULL THEN
        digest := sha256(convert_to(jsonb_build_array(
            type, key, sub, tenant, value, context, extract(epoch FROM delay), priority)::text, 'UTF8'));
        taken := pointsman.take_key(tenant, idempotency_key, digest, ticket, at_us);
        IF taken <> ticket THEN
            RETURN taken;
        END IF;
    END IF;
    INSERT INTO pointsman.outbox
    VALUES (n, ticket, type, key, sub, tenant, body, context::text, due_us, priority, idempotency_key, digest, at_us);
    IF (SELECT last_value FROM pointsman.bell) = 1 THEN
        PERFORM pointsman.ring();
    END IF;
    RETURN ticket;
END $$;

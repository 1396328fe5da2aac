-- Emitting in SQL, inside the producer's own transaction.
--
-- `emit` checks an event and inserts it into the outbox. A node removes it from there, gives it its id and its `prev`,
-- and records the id under the receipt. Producers wait neither for each other nor for a node.

-- The numbers of the rows of the outbox. A transaction has an id before it gets a number, so that one can determine
-- when no more rows can appear at or below a number. See outbox_progress.
CREATE SEQUENCE pointsman.outbox_number MAXVALUE 281474976710655;

CREATE FUNCTION pointsman.next_outbox_number() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_catalog.pg_current_xact_id();
    RETURN pg_catalog.nextval('pointsman.outbox_number');
END $$;

-- Emitted events that have no id yet, in the order of their numbers. A row usually exists for milliseconds.
CREATE TABLE pointsman.outbox (
    n               bigint  PRIMARY KEY DEFAULT pointsman.next_outbox_number(),
    receipt         uuid,
    type            text    NOT NULL,
    key             text,
    sub             text,
    tenant          text    NOT NULL DEFAULT 'default',
    value           text    NOT NULL DEFAULT 'null',
    context         text,
    due             bigint,
    priority        integer NOT NULL DEFAULT 100,
    idempotency_key text,
    digest          bytea,
    at              bigint  NOT NULL DEFAULT extract(epoch FROM clock_timestamp()) * 1000000,
    -- The cause of the event: only the store sets it, for programs that emit while they handle another event.
    cause_event     bigint,
    cause_task      bigint,
    cause_depth     integer
) WITH (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_threshold = -1, vacuum_truncate = off);
ALTER SEQUENCE pointsman.outbox_number OWNED BY pointsman.outbox.n;

-- One row. The outbox is and stays empty up to `empty_up_to`, so that reads start after it: while another session has
-- an old snapshot (a dump), removed rows cannot be vacuumed, and scanning 300,000 of them costs 25 ms at every read.
-- `empty_up_to` advances to `candidate` when all transactions before `candidate_xact` have ended.
CREATE TABLE pointsman.outbox_progress (
    singleton      boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    empty_up_to    bigint  NOT NULL DEFAULT 0,
    candidate      bigint  NOT NULL DEFAULT 0,
    candidate_xact xid8    NOT NULL DEFAULT '0'
) WITH (fillfactor = 10);
INSERT INTO pointsman.outbox_progress DEFAULT VALUES;

-- Rows of the outbox that were set aside because they cannot become events, with the reason. Only rows that were
-- inserted manually can be invalid; an idempotency key may also have been used over HTTP.
CREATE TABLE pointsman.outbox_refused (
    n               bigint  NOT NULL,
    receipt         uuid,
    type            text    NOT NULL,
    key             text,
    sub             text,
    tenant          text    NOT NULL,
    value           text    NOT NULL,
    context         text,
    due             bigint,
    priority        integer NOT NULL,
    idempotency_key text,
    digest          bytea,
    at              bigint  NOT NULL,
    reason          text    NOT NULL,
    refused_at      bigint  NOT NULL
);
CREATE INDEX outbox_refused_n ON pointsman.outbox_refused (n);

-- The event of each receipt. `n` is the number of the row in the outbox, which is part of the receipt, so that rows are
-- inserted and deleted in order. Event ids contain the time, by which old receipts expire.
CREATE TABLE pointsman.receipt (
    n       bigint PRIMARY KEY,
    receipt uuid   NOT NULL,
    event   bigint NOT NULL
);

-- Idempotency keys used in SQL, with a digest of the event. They are separate from the keys used over HTTP, because
-- nodes write those, and would have to wait for a producer's transaction that has used the same key.
CREATE TABLE pointsman.outbox_idempotency_key (
    tenant  text   COLLATE "C" NOT NULL,
    key     text   COLLATE "C" NOT NULL,
    digest  bytea  NOT NULL,
    receipt uuid   NOT NULL,
    at      bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX outbox_idempotency_key_at ON pointsman.outbox_idempotency_key (at);

-- Whether an emit must notify the nodes: 1 if their drainers sleep, 2 if one is awake or was notified. This is a
-- sequence, because transactions do not lock sequences. Transactions that notify commit one after the other, so only
-- the first emit after the drainers fell asleep notifies. With 16 connections on two cores: 6,200 emits a second
-- without any notification, 6,700 with this sequence, 2,300 with a notification each.
CREATE SEQUENCE pointsman.drainer_state MAXVALUE 2;

-- Returns the event types that only the engine emits. Types below them are reserved too.
CREATE FUNCTION pointsman.reserved_types() RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT ARRAY['Event', 'SchedulerEvent', 'SchedulerStateChanged', 'SchedulerClosed', 'FileBasedEvent', 'FileBasedAdded',
             'FileBasedRemoved', 'FileBasedReplaced', 'FileBasedActivated', 'OrderEvent', 'OrderStarted',
             'OrderFinished', 'OrderStepStarted', 'OrderStepEnded', 'OrderSetBack', 'OrderNodeChanged',
             'OrderSuspended', 'OrderResumed', 'OrderStatisticsChanged', 'JobChainEvent', 'JobChainStateChanged',
             'JobChainNodeActionChanged', 'TaskEvent', 'TaskStarted', 'TaskEnded', 'TaskClosed']
$$;

-- Returns the names of the event stream's own frames: readers of the stream would take an event of such a type for one.
-- Types below them are allowed.
CREATE FUNCTION pointsman.stream_frame_types() RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT ARRAY['Torn', 'task']
$$;

-- Quotes a text as error messages of the HTTP API do, with escapes for control characters.
CREATE FUNCTION pointsman.quote_escaped(text text, quote text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
SELECT quote || coalesce(string_agg(
           CASE WHEN c = E'\\' OR c = quote THEN E'\\' || c
                WHEN c = E'\t' THEN E'\\t' WHEN c = E'\n' THEN E'\\n' WHEN c = E'\r' THEN E'\\r'
                WHEN c COLLATE "C" ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' THEN E'\\u{' || to_hex(ascii(c)) || '}'
                ELSE c END, '' ORDER BY nth), '') || quote
FROM string_to_table(text, NULL) WITH ORDINALITY AS letters (c, nth)
$$;

-- Raises an error: the invalid argument, and the reason.
CREATE FUNCTION pointsman.raise_invalid_argument(argument text, detail text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = argument || ': ' || detail;
END $$;

-- Raises the error of an invalid type.
CREATE FUNCTION pointsman.raise_invalid_type(type text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    segment text;
    bad     text;
BEGIN
    IF type IS NULL THEN
        PERFORM pointsman.raise_invalid_argument('type', 'an event has a type');
    ELSIF octet_length(type) NOT BETWEEN 1 AND 255 THEN
        PERFORM pointsman.raise_invalid_argument('type',
            format('a type has 1 to 255 bytes, this one has %s', octet_length(type)));
    END IF;
    FOREACH segment IN ARRAY string_to_array(type, '.') LOOP
        bad := substring(segment COLLATE "C" FROM '[^A-Za-z0-9_-]');
        IF segment = '' THEN
            PERFORM pointsman.raise_invalid_argument('type',
                pointsman.quote_escaped(type, '"') || ' has an empty segment between its dots');
        ELSIF bad IS NOT NULL THEN
            PERFORM pointsman.raise_invalid_argument('type', format(
                '%s contains %s; a type is made of letters, digits, `_`, `-` and dots',
                pointsman.quote_escaped(type, '"'), pointsman.quote_escaped(bad, '''')));
        END IF;
    END LOOP;
    IF type COLLATE "C" = ANY (pointsman.stream_frame_types()) THEN
        PERFORM pointsman.raise_invalid_argument('type', format(
            '%1$s is the name of a frame of the event stream; use another type, such as %1$s.changed', type));
    END IF;
    PERFORM pointsman.raise_invalid_argument('type', 'only the engine itself emits ' || type);
END $$;

-- Raises the error of an invalid tenant.
CREATE FUNCTION pointsman.raise_invalid_tenant(tenant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF octet_length(tenant) NOT BETWEEN 1 AND 128 THEN
        PERFORM pointsman.raise_invalid_argument('tenant',
            format('a tenant has 1 to 128 bytes, this one has %s', octet_length(tenant)));
    END IF;
    PERFORM pointsman.raise_invalid_argument('tenant', format(
        '%s contains %s; a tenant is made of letters, digits, `.`, `_` and `-`', pointsman.quote_escaped(tenant, '"'),
        pointsman.quote_escaped(substring(tenant COLLATE "C" FROM '[^A-Za-z0-9._-]'), '''')));
END $$;

-- Raises the error of an invalid argument `key` or `sub`.
CREATE FUNCTION pointsman.raise_invalid_key(argument text, key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF octet_length(key) NOT BETWEEN 1 AND 512 THEN
        PERFORM pointsman.raise_invalid_argument(argument,
            format('a key has 1 to 512 bytes, this one has %s', octet_length(key)));
    END IF;
    PERFORM pointsman.raise_invalid_argument(argument, 'a key holds no control characters, this one has ' ||
        pointsman.quote_escaped(substring(key COLLATE "C" FROM E'[\\u0001-\\u001f\\u007f-\\u009f]'), ''''));
END $$;

-- Refuses a value that is too large, too deep, or contains a number that not every reader can represent.
CREATE FUNCTION pointsman.check_value(value jsonb, body text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF octet_length(body) > 1048576 THEN
        PERFORM pointsman.raise_invalid_argument('value',
            format('a value has at most 1048576 bytes, this one has %s', octet_length(body)));
    ELSIF value @? 'strict $.**{100} ? (@.type() == "array" || @.type() == "object")' THEN
        PERFORM pointsman.raise_invalid_argument('value', 'nested deeper than 100');
    ELSIF value @? 'strict $.** ? (@.type() == "number"
                    && (@ >= 1.7976931348623158e308 || @ <= -1.7976931348623158e308))' THEN
        PERFORM pointsman.raise_invalid_argument('value', 'a number too large for a double');
    END IF;
END $$;

-- Refuses a context that is not a small object of strings.
CREATE FUNCTION pointsman.check_context(context jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    entries bigint;
    name    text;
    entry   jsonb;
    at      text;
BEGIN
    IF jsonb_typeof(context) <> 'object' THEN
        PERFORM pointsman.raise_invalid_argument('context', 'this is not an object of strings');
    END IF;
    SELECT count(*) INTO entries FROM jsonb_object_keys(context);
    IF entries > 64 THEN
        PERFORM pointsman.raise_invalid_argument('context',
            format('a context has at most 64 entries, this one has %s', entries));
    END IF;
    FOR name, entry IN SELECT * FROM jsonb_each(context) LOOP
        at := 'context/' || replace(replace(name, '~', '~0'), '/', '~1');
        IF octet_length(name) > 4096 THEN
            PERFORM pointsman.raise_invalid_argument('context', 'a name in it has more than 4096 bytes');
        ELSIF jsonb_typeof(entry) <> 'string' THEN
            PERFORM pointsman.raise_invalid_argument(at, 'this is not a string');
        ELSIF octet_length(entry #>> '{}') > 4096 THEN
            PERFORM pointsman.raise_invalid_argument(at, 'it has more than 4096 bytes');
        END IF;
    END LOOP;
END $$;

-- Records an idempotency key for a receipt, or returns the receipt of its earlier use. Of two transactions with one
-- key, the second waits here until the first has ended.
CREATE FUNCTION pointsman.claim_idempotency_key(tenant text, key text, digest bytea, receipt uuid, at bigint)
RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
    earlier record;
BEGIN
    LOOP
        INSERT INTO pointsman.outbox_idempotency_key VALUES (tenant, key, digest, receipt, at) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN receipt;
        END IF;
        SELECT k.digest, k.receipt INTO earlier FROM pointsman.outbox_idempotency_key k
        WHERE k.tenant = claim_idempotency_key.tenant AND k.key = claim_idempotency_key.key;
        -- If the key has expired in between, the loop claims it.
        IF FOUND AND earlier.digest <> digest THEN
            RAISE EXCEPTION USING ERRCODE = 'unique_violation', MESSAGE =
                format('idempotency_key: the idempotency key %s was used before with other content',
                       pointsman.quote_escaped(key, '"'));
        ELSIF FOUND THEN
            RETURN earlier.receipt;
        END IF;
    END LOOP;
END $$;

-- Wakes the outbox drainers of the nodes. A transaction that will be prepared must not notify: it sets
-- pointsman.notify to off.
CREATE FUNCTION pointsman.notify_drainers() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('pointsman.notify', true), '') <> 'off' THEN
        PERFORM setval('pointsman.drainer_state', 2);
        PERFORM pg_notify('pointsman', 'outbox');
    END IF;
END $$;

-- Emits an event if and when the transaction commits, and returns a receipt. NULL is the same as omitting an argument.
-- An invalid event is an error here, and nothing is stored.
CREATE FUNCTION pointsman.emit(
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
    body            text := coalesce(value, 'null')::text;
    at              timestamp := clock_timestamp() AT TIME ZONE 'UTC';
    at_us           bigint := extract(epoch FROM at) * 1000000;
    due_us          bigint;
    n               bigint;
    new_receipt     uuid;
    claimed_receipt uuid;
    digest          bytea;
BEGIN
    tenant := coalesce(tenant, 'default');
    priority := coalesce(priority, 100);
    context := nullif(context, '{}');
    IF NOT coalesce(octet_length(type) <= 255 AND type COLLATE "C" ~ '^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*$'
                    AND split_part(type, '.', 1) COLLATE "C" <> ALL (pointsman.reserved_types())
                    AND type COLLATE "C" <> ALL (pointsman.stream_frame_types()), false) THEN
        PERFORM pointsman.raise_invalid_type(type);
    END IF;
    IF tenant COLLATE "C" !~ '^[A-Za-z0-9._-]{1,128}$' THEN
        PERFORM pointsman.raise_invalid_tenant(tenant);
    END IF;
    IF octet_length(key) NOT BETWEEN 1 AND 512 OR key COLLATE "C" ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' THEN
        PERFORM pointsman.raise_invalid_key('key', key);
    END IF;
    IF octet_length(sub) NOT BETWEEN 1 AND 512 OR sub COLLATE "C" ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' THEN
        PERFORM pointsman.raise_invalid_key('sub', sub);
    END IF;
    -- Shorter values are neither too deep nor do they contain such numbers.
    IF octet_length(body) > 200 THEN
        PERFORM pointsman.check_value(value, body);
    END IF;
    IF context IS NOT NULL THEN
        PERFORM pointsman.check_context(context);
    END IF;
    IF delay NOT BETWEEN interval '0' AND interval '36600 days' THEN
        PERFORM pointsman.raise_invalid_argument('delay',
            format('a delay is from 0 to 36600 days, this one is %s', delay));
    END IF;
    IF priority NOT BETWEEN 1 AND 9000 THEN
        PERFORM pointsman.raise_invalid_argument('priority',
            format('a priority is a whole number from 1 to 9000, not %s', priority));
    END IF;
    IF idempotency_key COLLATE "C" !~ '^[ -~]{1,255}$' THEN
        PERFORM pointsman.raise_invalid_argument('idempotency_key',
            'an idempotency key has 1 to 255 printable ASCII characters');
    END IF;

    n := pointsman.next_outbox_number();
    -- A random uuid, except for its version and for the row number at its end, by which `event_of` finds the row.
    new_receipt := overlay(left(gen_random_uuid()::text, 24) PLACING '8' FROM 15) || lpad(to_hex(n), 12, '0');
    due_us := extract(epoch FROM at + delay) * 1000000;
    IF idempotency_key IS NOT NULL THEN
        digest := sha256(convert_to(jsonb_build_array(
            type, key, sub, tenant, value, context, extract(epoch FROM delay), priority)::text, 'UTF8'));
        claimed_receipt := pointsman.claim_idempotency_key(tenant, idempotency_key, digest, new_receipt, at_us);
        IF claimed_receipt <> new_receipt THEN
            RETURN claimed_receipt;
        END IF;
    END IF;
    INSERT INTO pointsman.outbox
    VALUES (n, new_receipt, type, key, sub, tenant, body, context::text, due_us, priority, idempotency_key, digest,
            at_us);
    IF (SELECT last_value FROM pointsman.drainer_state) = 1 THEN
        PERFORM pointsman.notify_drainers();
    END IF;
    RETURN new_receipt;
END $$;

-- Returns the id of the event of a receipt; NULL while its row is in the outbox. All tables are read in one snapshot.
CREATE FUNCTION pointsman.event_of(receipt uuid) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pointsman, pg_temp AS $$
DECLARE
    number bigint := ('x' || right(receipt::text, 12))::bit(48)::bigint;
    id     bigint;
    reason text;
BEGIN
    SELECT r.event INTO id FROM pointsman.receipt r WHERE r.n = number AND r.receipt = event_of.receipt;
    IF FOUND THEN
        RETURN id;
    END IF;
    PERFORM FROM pointsman.outbox o WHERE o.n = number AND o.receipt = event_of.receipt;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    SELECT o.reason INTO reason FROM pointsman.outbox_refused o WHERE o.n = number AND o.receipt = event_of.receipt;
    IF FOUND THEN
        PERFORM pointsman.raise_invalid_argument('receipt', 'this was not an event: ' || reason);
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'no_data_found',
        MESSAGE = format('receipt: there is none %s, or none any more: they are kept for a day', receipt);
END $$;

-- Producers need USAGE on the schema and EXECUTE on `emit` and `event_of`, and nothing else.
REVOKE ALL ON FUNCTION pointsman.next_outbox_number, pointsman.reserved_types, pointsman.stream_frame_types,
    pointsman.quote_escaped, pointsman.raise_invalid_argument, pointsman.raise_invalid_type,
    pointsman.raise_invalid_tenant, pointsman.raise_invalid_key, pointsman.check_value, pointsman.check_context,
    pointsman.claim_idempotency_key, pointsman.notify_drainers, pointsman.emit, pointsman.event_of FROM PUBLIC;

-- The whole schema as the migrations make it, for reading and for comparing: nobody runs this file. It is what
-- pg_dump writes of a fresh database; `REFRESH=1 cargo test -p pointsman-store-postgres --test schema` renews it.

CREATE SCHEMA pointsman;

CREATE TYPE pointsman.queue_status AS ENUM (
    'new',
    'scheduled',
    'locked',
    'done',
    'error',
    'missing'
);

CREATE TYPE pointsman.scheduling_rule_type AS ENUM (
    'pause',
    'block'
);

CREATE FUNCTION pointsman.add_partition(parent text, low bigint, high bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    partition_name text := parent || '_' || low;
    key_column     text := CASE parent WHEN 'journal' THEN 'number' WHEN 'history' THEN 'n' ELSE 'partition_key' END;
BEGIN
    EXECUTE format('CREATE TABLE pointsman.%I (LIKE pointsman.%I INCLUDING ALL, CHECK (%I >= %s AND %I < %s))',
                   partition_name, parent, key_column, low, key_column, high);
    EXECUTE format('ALTER TABLE pointsman.%I ATTACH PARTITION pointsman.%I FOR VALUES FROM (%s) TO (%s)',
                   parent, partition_name, low, high);
END $$;

CREATE FUNCTION pointsman.check_context(context jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION pointsman.check_value(value jsonb, body text) RETURNS void
    LANGUAGE plpgsql
    AS $_$
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
END $_$;

CREATE FUNCTION pointsman.claim_idempotency_key(tenant text, key text, digest bytea, receipt uuid, at bigint) RETURNS uuid
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION pointsman.emit(type text, key text DEFAULT NULL::text, value jsonb DEFAULT 'null'::jsonb, context jsonb DEFAULT '{}'::jsonb, tenant text DEFAULT 'default'::text, delay interval DEFAULT NULL::interval, priority integer DEFAULT 100, idempotency_key text DEFAULT NULL::text, sub text DEFAULT NULL::text) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pointsman', 'pg_temp'
    AS $_$
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
END $_$;

CREATE FUNCTION pointsman.event_of(receipt uuid) RETURNS bigint
    LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pointsman', 'pg_temp'
    AS $$
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

CREATE FUNCTION pointsman.micros_to_timestamp(micros bigint) RETURNS timestamp with time zone
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT timestamptz 'epoch' + micros * interval '1 microsecond' $$;

CREATE FUNCTION pointsman.next_outbox_number() RETURNS bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_catalog.pg_current_xact_id();
    RETURN pg_catalog.nextval('pointsman.outbox_number');
END $$;

CREATE FUNCTION pointsman.notify_drainers() RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF coalesce(current_setting('pointsman.notify', true), '') <> 'off' THEN
        PERFORM setval('pointsman.drainer_state', 2);
        PERFORM pg_notify('pointsman', 'outbox');
    END IF;
END $$;

CREATE FUNCTION pointsman.quote_escaped(text text, quote text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
SELECT quote || coalesce(string_agg(
           CASE WHEN c = E'\\' OR c = quote THEN E'\\' || c
                WHEN c = E'\t' THEN E'\\t' WHEN c = E'\n' THEN E'\\n' WHEN c = E'\r' THEN E'\\r'
                WHEN c COLLATE "C" ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' THEN E'\\u{' || to_hex(ascii(c)) || '}'
                ELSE c END, '' ORDER BY nth), '') || quote
FROM string_to_table(text, NULL) WITH ORDINALITY AS letters (c, nth)
$$;

CREATE FUNCTION pointsman.raise_invalid_argument(argument text, detail text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = argument || ': ' || detail;
END $$;

CREATE FUNCTION pointsman.raise_invalid_key(argument text, key text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF octet_length(key) NOT BETWEEN 1 AND 512 THEN
        PERFORM pointsman.raise_invalid_argument(argument,
            format('a key has 1 to 512 bytes, this one has %s', octet_length(key)));
    END IF;
    PERFORM pointsman.raise_invalid_argument(argument, 'a key holds no control characters, this one has ' ||
        pointsman.quote_escaped(substring(key COLLATE "C" FROM E'[\\u0001-\\u001f\\u007f-\\u009f]'), ''''));
END $$;

CREATE FUNCTION pointsman.raise_invalid_tenant(tenant text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF octet_length(tenant) NOT BETWEEN 1 AND 128 THEN
        PERFORM pointsman.raise_invalid_argument('tenant',
            format('a tenant has 1 to 128 bytes, this one has %s', octet_length(tenant)));
    END IF;
    PERFORM pointsman.raise_invalid_argument('tenant', format(
        '%s contains %s; a tenant is made of letters, digits, `.`, `_` and `-`', pointsman.quote_escaped(tenant, '"'),
        pointsman.quote_escaped(substring(tenant COLLATE "C" FROM '[^A-Za-z0-9._-]'), '''')));
END $$;

CREATE FUNCTION pointsman.raise_invalid_type(type text) RETURNS void
    LANGUAGE plpgsql
    AS $_$
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
END $_$;

CREATE FUNCTION pointsman.reserved_types() RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
SELECT ARRAY['Event', 'SchedulerEvent', 'SchedulerStateChanged', 'SchedulerClosed', 'FileBasedEvent', 'FileBasedAdded',
             'FileBasedRemoved', 'FileBasedReplaced', 'FileBasedActivated', 'OrderEvent', 'OrderStarted',
             'OrderFinished', 'OrderStepStarted', 'OrderStepEnded', 'OrderSetBack', 'OrderNodeChanged',
             'OrderSuspended', 'OrderResumed', 'OrderStatisticsChanged', 'JobChainEvent', 'JobChainStateChanged',
             'JobChainNodeActionChanged', 'TaskEvent', 'TaskStarted', 'TaskEnded', 'TaskClosed']
$$;

CREATE FUNCTION pointsman.stream_frame_types() RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
SELECT ARRAY['Torn', 'task']
$$;

CREATE TABLE pointsman.attempt (
    partition_key bigint NOT NULL,
    task bigint NOT NULL,
    number bigint NOT NULL,
    started bigint NOT NULL,
    ended bigint NOT NULL,
    outcome smallint NOT NULL,
    error text
)
PARTITION BY RANGE (partition_key);

CREATE TABLE pointsman.attempt_retained (
    partition_key bigint NOT NULL,
    task bigint NOT NULL,
    number bigint NOT NULL,
    started bigint NOT NULL,
    ended bigint NOT NULL,
    outcome smallint NOT NULL,
    error text
);

CREATE TABLE pointsman.audit_entry (
    n bigint NOT NULL,
    at bigint NOT NULL,
    by text NOT NULL,
    action text NOT NULL,
    what text NOT NULL,
    detail text NOT NULL
);

ALTER TABLE pointsman.audit_entry ALTER COLUMN n ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME pointsman.audit_entry_n_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE pointsman.chain (
    path text NOT NULL,
    def text NOT NULL,
    defined boolean NOT NULL,
    state text NOT NULL,
    reconciled_up_to bigint
);

CREATE TABLE pointsman.commit_version (
    version bigint NOT NULL,
    nonce bigint DEFAULT 0 NOT NULL,
    registry_version bigint DEFAULT 0 NOT NULL,
    invalidations bigint[],
    object_invalidations bytea,
    last_event bigint DEFAULT 0 NOT NULL,
    expired_up_to bigint DEFAULT 0 NOT NULL,
    last_task bigint DEFAULT 0 NOT NULL,
    last_fence bigint DEFAULT 0 NOT NULL,
    last_object bigint DEFAULT 0 NOT NULL,
    last_order bigint DEFAULT 0 NOT NULL,
    journaled_events bigint DEFAULT 0 NOT NULL,
    archived_tasks bigint DEFAULT 0 NOT NULL,
    last_archive_number bigint DEFAULT 0 NOT NULL,
    expired_archive_number bigint DEFAULT 0 NOT NULL,
    expired_event_number bigint DEFAULT 0 NOT NULL,
    journal_end bigint DEFAULT 0 NOT NULL,
    history_end bigint DEFAULT 0 NOT NULL,
    next_due bigint
)
WITH (vacuum_truncate=off, autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0');
ALTER TABLE ONLY pointsman.commit_version ALTER COLUMN invalidations SET STORAGE PLAIN;
ALTER TABLE ONLY pointsman.commit_version ALTER COLUMN object_invalidations SET STORAGE PLAIN;

CREATE SEQUENCE pointsman.drainer_state
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    MAXVALUE 2
    CACHE 1;

CREATE TABLE pointsman.ended_order (
    key text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL,
    node text NOT NULL,
    ended bigint NOT NULL
);

CREATE TABLE pointsman.fire (
    schedule text NOT NULL,
    planned bigint NOT NULL,
    at bigint NOT NULL,
    outcome text NOT NULL,
    event bigint,
    task text
);

CREATE TABLE pointsman.handler (
    id bigint NOT NULL,
    name text NOT NULL,
    def text NOT NULL,
    defined boolean NOT NULL,
    limiter_state text DEFAULT ''::text NOT NULL,
    gaps text DEFAULT '[]'::text NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE pointsman.history (
    n bigint NOT NULL,
    seq bigint NOT NULL,
    queue bigint NOT NULL,
    event bigint,
    type text NOT NULL,
    key text,
    status smallint NOT NULL,
    reason smallint,
    sync boolean NOT NULL,
    stage bigint NOT NULL,
    priority bigint NOT NULL,
    attempt bigint NOT NULL,
    retries bigint NOT NULL,
    crashes bigint NOT NULL,
    late boolean NOT NULL,
    has_lane boolean NOT NULL,
    prev_sent bigint,
    planned bigint,
    created bigint NOT NULL,
    started bigint,
    finished bigint NOT NULL,
    error text,
    result text
)
PARTITION BY RANGE (n);

CREATE TABLE pointsman.journal (
    number bigint NOT NULL,
    id bigint NOT NULL,
    prev bigint,
    type text NOT NULL,
    key text,
    sub text,
    tenant text NOT NULL,
    value text NOT NULL,
    context text,
    cause_event bigint,
    cause_task bigint,
    depth integer NOT NULL,
    first_task bigint NOT NULL,
    tasks bigint NOT NULL
)
PARTITION BY RANGE (number);

CREATE VIEW pointsman.last_commit AS
 SELECT commit_version.version,
    commit_version.nonce,
    commit_version.registry_version,
    commit_version.invalidations,
    commit_version.object_invalidations,
    commit_version.last_event,
    commit_version.expired_up_to,
    commit_version.last_task,
    commit_version.last_fence,
    commit_version.last_object,
    commit_version.last_order,
    commit_version.journaled_events,
    commit_version.archived_tasks,
    commit_version.last_archive_number,
    commit_version.expired_archive_number,
    commit_version.expired_event_number,
    commit_version.journal_end,
    commit_version.history_end,
    commit_version.next_due
   FROM pointsman.commit_version
  ORDER BY commit_version.version DESC
 LIMIT 1;

CREATE TABLE pointsman.orders (
    n bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    chain text NOT NULL,
    node text NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL,
    priority bigint NOT NULL,
    planned bigint,
    created bigint NOT NULL,
    started bigint,
    suspended boolean NOT NULL,
    task bigint,
    origin bigint,
    depth integer NOT NULL,
    step_succeeded boolean NOT NULL,
    suspended_by_task bigint,
    took_on_error boolean DEFAULT false NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE pointsman.queue (
    id bigint NOT NULL,
    handler bigint NOT NULL,
    tenant text NOT NULL,
    collection text NOT NULL,
    canvas_id uuid NOT NULL,
    ready bigint DEFAULT 0 NOT NULL,
    waiting bigint DEFAULT 0 NOT NULL,
    scheduled bigint DEFAULT 0 NOT NULL,
    running bigint DEFAULT 0 NOT NULL,
    halted bigint DEFAULT 0 NOT NULL,
    missing bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='20', vacuum_truncate=off, autovacuum_vacuum_threshold='500', autovacuum_vacuum_scale_factor='0.01');

CREATE TABLE pointsman.schedule (
    name text NOT NULL,
    expression text NOT NULL,
    resolved_up_to bigint NOT NULL,
    next_catch_up bigint,
    last_event bigint,
    last_registered_at bigint NOT NULL
);

CREATE TABLE pointsman.task (
    seq bigint NOT NULL,
    queue bigint NOT NULL,
    event bigint,
    order_number bigint,
    phase smallint NOT NULL,
    lane bigint,
    lane_position bigint,
    concurrency_group bigint,
    key_bucket integer,
    sync boolean NOT NULL,
    stage bigint NOT NULL,
    priority bigint NOT NULL,
    score bigint NOT NULL,
    rank bigint NOT NULL,
    due bigint NOT NULL,
    attempt bigint NOT NULL,
    retries bigint NOT NULL,
    crashes bigint NOT NULL,
    late boolean NOT NULL,
    node bigint,
    fence bigint,
    leased_until bigint,
    started bigint,
    prev_sent bigint,
    planned bigint,
    created bigint NOT NULL,
    reason smallint,
    error text
)
WITH (fillfactor='70', vacuum_truncate=off, autovacuum_vacuum_threshold='1000', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.2', autovacuum_vacuum_cost_delay='0');

CREATE VIEW pointsman.events AS
 WITH tasks AS (
         SELECT t_1.seq,
            t_1.queue,
            t_1.event,
            t_1.order_number,
            t_1.retries,
            t_1.due,
            t_1.created,
            t_1.started AS processed,
            t_1.node,
            t_1.planned,
            (
                CASE t_1.phase
                    WHEN 4 THEN 'scheduled'::text
                    WHEN 5 THEN 'locked'::text
                    WHEN 6 THEN 'error'::text
                    WHEN 7 THEN 'missing'::text
                    ELSE 'new'::text
                END)::pointsman.queue_status AS status
           FROM pointsman.task t_1
        UNION ALL
         SELECT h_1.seq,
            h_1.queue,
            h_1.event,
            NULL::bigint,
            h_1.retries,
            h_1.created,
            h_1.created,
            h_1.finished,
            NULL::bigint,
            h_1.planned,
            (
                CASE h_1.status
                    WHEN 0 THEN 'done'::text
                    ELSE 'error'::text
                END)::pointsman.queue_status AS queue_status
           FROM pointsman.history h_1
          WHERE (h_1.n > ( SELECT last_commit.expired_archive_number
                   FROM pointsman.last_commit))
        )
 SELECT t.seq AS id,
    t.status,
    (t.node)::integer AS dequeued_by,
    q.canvas_id,
    q.canvas_id AS account_id,
        CASE
            WHEN (q.collection ~~ '/%'::text) THEN 'ORDER'::text
            WHEN (q.collection <> ''::text) THEN 'SYNC'::text
            WHEN (t.planned IS NOT NULL) THEN 'CRON'::text
            ELSE 'WORKER'::text
        END AS space,
    h.name,
    COALESCE(( SELECT j.value
           FROM pointsman.journal j
          WHERE (j.id = t.event)), ( SELECT o.value
           FROM pointsman.orders o
          WHERE (o.n = t.order_number)), 'null'::text) AS value,
    (t.retries)::integer AS retries,
    pointsman.micros_to_timestamp(t.due) AS delay_until,
    COALESCE(( SELECT s.expression
           FROM (pointsman.fire f
             JOIN pointsman.schedule s ON ((s.name = f.schedule)))
          WHERE ((t.planned IS NOT NULL) AND (f.event = t.event))
         LIMIT 1), '_'::text) AS modifier,
    pointsman.micros_to_timestamp(t.created) AS enqueued_at,
    pointsman.micros_to_timestamp(t.processed) AS last_processed_at
   FROM ((tasks t
     JOIN pointsman.queue q ON ((q.id = t.queue)))
     JOIN pointsman.handler h ON ((h.id = q.handler)));

CREATE TABLE pointsman.file_digest (
    key text NOT NULL,
    digest text NOT NULL
);

CREATE TABLE pointsman.idempotency_record (
    n bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    response text NOT NULL,
    at bigint NOT NULL
);

ALTER TABLE pointsman.idempotency_record ALTER COLUMN n ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME pointsman.idempotency_record_n_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE pointsman.journal_retained (
    number bigint NOT NULL,
    id bigint NOT NULL,
    prev bigint,
    type text NOT NULL,
    key text,
    sub text,
    tenant text NOT NULL,
    value text NOT NULL,
    context text,
    cause_event bigint,
    cause_task bigint,
    depth integer NOT NULL,
    first_task bigint NOT NULL,
    tasks bigint NOT NULL
);

CREATE TABLE pointsman.journal_sparse_index (
    number bigint NOT NULL,
    id bigint NOT NULL
);

CREATE TABLE pointsman.log (
    partition_key bigint NOT NULL,
    task bigint NOT NULL,
    n bigint NOT NULL,
    "time" bigint NOT NULL,
    level smallint NOT NULL,
    message text NOT NULL
)
PARTITION BY RANGE (partition_key);

CREATE TABLE pointsman.log_retained (
    partition_key bigint NOT NULL,
    task bigint NOT NULL,
    n bigint NOT NULL,
    "time" bigint NOT NULL,
    level smallint NOT NULL,
    message text NOT NULL
);

CREATE TABLE pointsman.meta (
    name text NOT NULL,
    text text NOT NULL
);

CREATE TABLE pointsman.migration (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    at timestamp with time zone NOT NULL
);

CREATE TABLE pointsman.node (
    id bigint NOT NULL,
    name text NOT NULL,
    joined bigint NOT NULL,
    last_heartbeat bigint NOT NULL,
    gone boolean DEFAULT false NOT NULL,
    capabilities text DEFAULT ''::text NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE pointsman.node ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME pointsman.node_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE pointsman.object (
    tenant text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    last_event bigint NOT NULL,
    last_sent bytea NOT NULL,
    checked bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE pointsman.outbox (
    n bigint DEFAULT pointsman.next_outbox_number() NOT NULL,
    receipt uuid,
    type text NOT NULL,
    key text,
    sub text,
    tenant text DEFAULT 'default'::text NOT NULL,
    value text DEFAULT 'null'::text NOT NULL,
    context text,
    due bigint,
    priority integer DEFAULT 100 NOT NULL,
    idempotency_key text,
    digest bytea,
    at bigint DEFAULT (EXTRACT(epoch FROM clock_timestamp()) * (1000000)::numeric) NOT NULL,
    cause_event bigint,
    cause_task bigint,
    cause_depth integer
)
WITH (autovacuum_vacuum_threshold='5000', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_cost_delay='0', autovacuum_vacuum_insert_threshold='-1', vacuum_truncate=off);

CREATE TABLE pointsman.outbox_idempotency_key (
    tenant text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    receipt uuid NOT NULL,
    at bigint NOT NULL
);

CREATE SEQUENCE pointsman.outbox_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    MAXVALUE 281474976710655
    CACHE 1;

ALTER SEQUENCE pointsman.outbox_number OWNED BY pointsman.outbox.n;

CREATE TABLE pointsman.outbox_progress (
    singleton boolean DEFAULT true NOT NULL,
    empty_up_to bigint DEFAULT 0 NOT NULL,
    candidate bigint DEFAULT 0 NOT NULL,
    candidate_xact xid8 DEFAULT '0'::xid8 NOT NULL,
    CONSTRAINT outbox_progress_singleton_check CHECK (singleton)
)
WITH (fillfactor='10');

CREATE TABLE pointsman.outbox_refused (
    n bigint NOT NULL,
    receipt uuid,
    type text NOT NULL,
    key text,
    sub text,
    tenant text NOT NULL,
    value text NOT NULL,
    context text,
    due bigint,
    priority integer NOT NULL,
    idempotency_key text,
    digest bytea,
    at bigint NOT NULL,
    reason text NOT NULL,
    refused_at bigint NOT NULL
);

CREATE TABLE pointsman.receipt (
    n bigint NOT NULL,
    receipt uuid NOT NULL,
    event bigint NOT NULL
);

CREATE TABLE pointsman.rule_author (
    rule integer NOT NULL,
    by text NOT NULL,
    reason text NOT NULL
);

CREATE TABLE pointsman.scheduling_rules (
    id integer NOT NULL,
    rule_type pointsman.scheduling_rule_type NOT NULL,
    canvas_id uuid NOT NULL,
    handler_name text NOT NULL,
    event_space text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT scheduling_rules_event_space_check CHECK ((event_space = ANY (ARRAY['WORKER'::text, 'SYNC'::text, 'CRON'::text, 'ORDER'::text])))
);

ALTER TABLE pointsman.scheduling_rules ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME pointsman.scheduling_rules_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE pointsman.tenant (
    name text NOT NULL,
    canvas_id uuid NOT NULL
);

CREATE TABLE pointsman.write_lock (
    singleton boolean DEFAULT true NOT NULL,
    CONSTRAINT write_lock_singleton_check CHECK (singleton)
);

ALTER TABLE ONLY pointsman.attempt ATTACH PARTITION pointsman.attempt_retained FOR VALUES FROM (MINVALUE) TO ('0');

ALTER TABLE ONLY pointsman.journal ATTACH PARTITION pointsman.journal_retained FOR VALUES FROM (MINVALUE) TO ('0');

ALTER TABLE ONLY pointsman.log ATTACH PARTITION pointsman.log_retained FOR VALUES FROM (MINVALUE) TO ('0');

ALTER TABLE ONLY pointsman.audit_entry
    ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (n);

ALTER TABLE ONLY pointsman.chain
    ADD CONSTRAINT chain_pkey PRIMARY KEY (path);

ALTER TABLE ONLY pointsman.commit_version
    ADD CONSTRAINT commit_version_pkey PRIMARY KEY (version);

ALTER TABLE ONLY pointsman.ended_order
    ADD CONSTRAINT ended_order_pkey PRIMARY KEY (key, tenant);

ALTER TABLE ONLY pointsman.file_digest
    ADD CONSTRAINT file_digest_pkey PRIMARY KEY (key);

ALTER TABLE ONLY pointsman.fire
    ADD CONSTRAINT fire_pkey PRIMARY KEY (schedule, planned);

ALTER TABLE ONLY pointsman.handler
    ADD CONSTRAINT handler_name_key UNIQUE (name);

ALTER TABLE ONLY pointsman.handler
    ADD CONSTRAINT handler_pkey PRIMARY KEY (id);

ALTER TABLE ONLY pointsman.idempotency_record
    ADD CONSTRAINT idempotency_record_pkey PRIMARY KEY (tenant, key);

ALTER TABLE ONLY pointsman.journal_sparse_index
    ADD CONSTRAINT journal_sparse_index_pkey PRIMARY KEY (number);

ALTER TABLE ONLY pointsman.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (name);

ALTER TABLE ONLY pointsman.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);

ALTER TABLE ONLY pointsman.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);

ALTER TABLE ONLY pointsman.object
    ADD CONSTRAINT object_pkey PRIMARY KEY (tenant, key);

ALTER TABLE ONLY pointsman.orders
    ADD CONSTRAINT orders_key_tenant_key UNIQUE (key, tenant);

ALTER TABLE ONLY pointsman.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (n);

ALTER TABLE ONLY pointsman.outbox_idempotency_key
    ADD CONSTRAINT outbox_idempotency_key_pkey PRIMARY KEY (tenant, key);

ALTER TABLE ONLY pointsman.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (n);

ALTER TABLE ONLY pointsman.outbox_progress
    ADD CONSTRAINT outbox_progress_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY pointsman.queue
    ADD CONSTRAINT queue_handler_tenant_collection_key UNIQUE (handler, tenant, collection);

ALTER TABLE ONLY pointsman.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (id);

ALTER TABLE ONLY pointsman.receipt
    ADD CONSTRAINT receipt_pkey PRIMARY KEY (n);

ALTER TABLE ONLY pointsman.rule_author
    ADD CONSTRAINT rule_author_pkey PRIMARY KEY (rule);

ALTER TABLE ONLY pointsman.schedule
    ADD CONSTRAINT schedule_pkey PRIMARY KEY (name);

ALTER TABLE ONLY pointsman.scheduling_rules
    ADD CONSTRAINT scheduling_rules_pkey PRIMARY KEY (id);

ALTER TABLE ONLY pointsman.scheduling_rules
    ADD CONSTRAINT scheduling_rules_rule_type_canvas_id_handler_name_event_spa_key UNIQUE (rule_type, canvas_id, handler_name, event_space);

ALTER TABLE ONLY pointsman.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY pointsman.tenant
    ADD CONSTRAINT tenant_canvas_id_key UNIQUE (canvas_id);

ALTER TABLE ONLY pointsman.tenant
    ADD CONSTRAINT tenant_pkey PRIMARY KEY (name);

ALTER TABLE ONLY pointsman.write_lock
    ADD CONSTRAINT write_lock_pkey PRIMARY KEY (singleton);

CREATE INDEX attempt_task ON ONLY pointsman.attempt USING btree (task, number);

CREATE INDEX attempt_retained_task_number_idx ON pointsman.attempt_retained USING btree (task, number);

CREATE INDEX ended_order_age ON pointsman.ended_order USING btree (ended);

CREATE INDEX fire_event ON pointsman.fire USING btree (event) WHERE (event IS NOT NULL);

CREATE INDEX fire_recorded_at ON pointsman.fire USING btree (at);

CREATE INDEX history_failed ON ONLY pointsman.history USING btree (seq) WHERE (status = 1);

CREATE INDEX history_n ON ONLY pointsman.history USING btree (n);

CREATE INDEX history_out_of_order ON ONLY pointsman.history USING btree (event) WHERE late;

CREATE INDEX history_seq ON ONLY pointsman.history USING btree (seq);

CREATE INDEX history_source_runs ON ONLY pointsman.history USING btree (seq) WHERE ((event IS NULL) AND (key IS NULL));

CREATE INDEX idempotency_record_at ON pointsman.idempotency_record USING btree (at);

CREATE INDEX journal_cause ON ONLY pointsman.journal USING btree (cause_event) WHERE (cause_event IS NOT NULL);

CREATE INDEX journal_id ON ONLY pointsman.journal USING btree (id);

CREATE INDEX journal_retained_cause_event_idx ON pointsman.journal_retained USING btree (cause_event) WHERE (cause_event IS NOT NULL);

CREATE INDEX journal_retained_id_idx ON pointsman.journal_retained USING btree (id);

CREATE INDEX log_task ON ONLY pointsman.log USING btree (task, n);

CREATE INDEX log_retained_task_n_idx ON pointsman.log_retained USING btree (task, n);

CREATE INDEX object_last_found_in_use ON pointsman.object USING btree (checked);

CREATE INDEX orders_chain ON pointsman.orders USING btree (chain, n);

CREATE INDEX outbox_idempotency_key_at ON pointsman.outbox_idempotency_key USING btree (at);

CREATE INDEX outbox_refused_n ON pointsman.outbox_refused USING btree (n);

CREATE INDEX task_concurrency_group ON pointsman.task USING btree (concurrency_group, phase, seq) WHERE (concurrency_group IS NOT NULL);

CREATE INDEX task_due ON pointsman.task USING btree (due) WHERE (phase = 2);

CREATE INDEX task_gated ON pointsman.task USING btree (event, stage) WHERE (phase = 1);

CREATE INDEX task_halted_or_missing ON pointsman.task USING btree (seq) WHERE (phase >= 6);

CREATE INDEX task_lane ON pointsman.task USING btree (lane, lane_position) WHERE (lane_position IS NOT NULL);

CREATE INDEX task_missing ON pointsman.task USING btree (queue, seq) WHERE (phase = 7);

CREATE INDEX task_out_of_order ON pointsman.task USING btree (event) WHERE late;

CREATE INDEX task_phase_scheduled ON pointsman.task USING btree (score DESC, rank, seq) WHERE (phase = 4);

CREATE INDEX task_ready ON pointsman.task USING btree (queue, score DESC, rank, seq) INCLUDE (key_bucket) WHERE (phase = 3);

CREATE INDEX task_running ON pointsman.task USING btree (node) WHERE (phase = 5);

CREATE INDEX task_worker_lease_end ON pointsman.task USING btree (leased_until) WHERE (leased_until IS NOT NULL);

ALTER INDEX pointsman.attempt_task ATTACH PARTITION pointsman.attempt_retained_task_number_idx;

ALTER INDEX pointsman.journal_cause ATTACH PARTITION pointsman.journal_retained_cause_event_idx;

ALTER INDEX pointsman.journal_id ATTACH PARTITION pointsman.journal_retained_id_idx;

ALTER INDEX pointsman.log_task ATTACH PARTITION pointsman.log_retained_task_n_idx;

ALTER TABLE ONLY pointsman.queue
    ADD CONSTRAINT queue_handler_fkey FOREIGN KEY (handler) REFERENCES pointsman.handler(id);

ALTER TABLE ONLY pointsman.rule_author
    ADD CONSTRAINT rule_author_rule_fkey FOREIGN KEY (rule) REFERENCES pointsman.scheduling_rules(id) ON DELETE CASCADE;

-- Transactions of programs, and their events.

-- name: insert_outbox_events
-- Inserts the events of a unit of work into the outbox, in their order, and returns their receipts. The events are
-- valid; a receipt has the format of `pointsman.emit`.
WITH numbered AS MATERIALIZED (
    SELECT e.*, pointsman.next_outbox_number() AS n
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::integer[],
                $9::bigint[], $10::bigint[], $11::integer[])
         AS e (type, key, sub, tenant, value, context, due, priority, cause_event, cause_task, cause_depth)
)
INSERT INTO pointsman.outbox
    (n, receipt, type, key, sub, tenant, value, context, due, priority, cause_event, cause_task, cause_depth)
SELECT n, (overlay(left(gen_random_uuid()::text, 24) PLACING '8' FROM 15) || lpad(to_hex(n), 12, '0'))::uuid,
       type, key, sub, tenant, value, context, due, priority, cause_event, cause_task, cause_depth
FROM numbered
RETURNING receipt

-- name: notify_drainers
-- Notifies the nodes if their drainers sleep.
SELECT pointsman.notify_drainers() FROM pointsman.drainer_state WHERE last_value = 1

-- name: read_transaction_id
-- The id of this transaction, to check its status later; none if it has written nothing.
SELECT pg_current_xact_id_if_assigned()::text

-- name: read_transaction_status
-- The status of a transaction: committed, aborted, or in progress.
SELECT pg_xact_status($1::text::xid8)

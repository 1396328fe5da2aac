-- Sets the concurrency groups of tasks.
UPDATE pointsman.task t SET concurrency_group = u.concurrency_group
FROM unnest($1::bigint[], $2::bigint[]) AS u (seq, concurrency_group) WHERE t.seq = ANY (ARRAY[u.seq])

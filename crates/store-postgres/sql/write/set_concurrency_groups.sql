-- Sets the concurrency groups of tasks.
UPDATE pointsman.task t SET crowd = u.crowd FROM unnest($1::bigint[], $2::bigint[]) AS u (seq, crowd) WHERE t.seq = ANY (ARRAY[u.seq])

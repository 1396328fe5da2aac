-- Sets lane, concurrency group and bucket of tasks.
UPDATE pointsman.task t SET lane = u.lane, concurrency_group = u.concurrency_group, key_bucket = u.key_bucket
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[]) AS u (seq, lane, concurrency_group, key_bucket)
WHERE t.seq = ANY (ARRAY[u.seq])

-- Sets lane, concurrency group and bucket of tasks.
UPDATE pointsman.task t SET lane = u.lane, crowd = u.crowd, bucket = u.bucket
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[]) AS u (seq, lane, crowd, bucket)
WHERE t.seq = ANY (ARRAY[u.seq])

-- Sets phase and rank of tasks.
UPDATE pointsman.task t SET phase = u.phase, rank = u.rank
FROM unnest($1::bigint[], $2::smallint[], $3::bigint[]) AS u (seq, phase, rank)
WHERE t.seq = ANY (ARRAY[u.seq])

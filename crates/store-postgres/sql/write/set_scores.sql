-- Writes the scores of tasks.
UPDATE pointsman.task t SET score = u.score FROM unnest($1::bigint[], $2::bigint[]) AS u (seq, score) WHERE t.seq = ANY (ARRAY[u.seq])

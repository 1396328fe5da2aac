-- Ended tasks that are kept, though others that ended after them are forgotten, are counted anew.
UPDATE pointsman.history h SET n = u.new FROM unnest($1::bigint[], $2::bigint[]) AS u (old, new) WHERE h.n = ANY (ARRAY[u.old])

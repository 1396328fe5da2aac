-- Gives new numbers to archived tasks that stay although later ones expire.
UPDATE pointsman.history h SET n = u.new FROM unnest($1::bigint[], $2::bigint[]) AS u (old, new) WHERE h.n = ANY (ARRAY[u.old])

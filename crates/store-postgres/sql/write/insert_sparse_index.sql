-- Marks every thousandth event.
INSERT INTO pointsman.mark (number, id) SELECT * FROM unnest($1::bigint[], $2::bigint[])

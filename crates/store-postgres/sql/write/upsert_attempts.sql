-- Keeps attempts; one that was kept before is replaced.
WITH kept AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::text[])
           AS u (task, number, started, ended, how, error)
), gone AS (
    DELETE FROM pointsman.attempt a USING kept WHERE a.task = ANY (ARRAY[kept.task]) AND a.number = kept.number
)
INSERT INTO pointsman.attempt (era, task, number, started, ended, how, error)
SELECT $7, task, number, started, ended, how, error FROM kept

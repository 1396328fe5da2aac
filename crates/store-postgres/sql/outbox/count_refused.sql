-- Counts the rows that were set aside, up to 100,001.
SELECT count(*) FROM (SELECT FROM pointsman.outbox_refused LIMIT 100001) AS refused

-- How many rows were set aside, counted up to 100,001.
SELECT count(*) FROM (SELECT FROM pointsman.outbox_refused LIMIT 100001) AS refused

-- Deeds and what is emitted in SQL are numbered behind what there is.
SELECT setval('pointsman.deed_n_seq', greatest(d.n, 1), d.n > 0), setval('pointsman.outbox_n', greatest(o.n, 1), o.n > 0)
FROM (SELECT coalesce(max(n), 0) AS n FROM pointsman.deed) d,
     (SELECT greatest((SELECT max(n) FROM pointsman.receipt), (SELECT max(n) FROM pointsman.outbox_refused), 0) AS n) o

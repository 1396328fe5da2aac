-- Deeds and what is emitted in SQL are numbered behind what there is, and behind what was given out. A number that somebody
-- made up by hand must not use up all that there are.
SELECT setval('pointsman.deed_n_seq', greatest(d.n, 1), d.n > 0), setval('pointsman.outbox_n', greatest(o.n, 1), o.n > 0)
FROM (SELECT greatest((SELECT max(n) FROM pointsman.deed),
                      (SELECT last_value FROM pointsman.deed_n_seq WHERE is_called), 0) AS n) d,
     (SELECT greatest((SELECT max(n) FROM pointsman.outbox WHERE n < 140737488355328),
                      (SELECT max(n) FROM pointsman.receipt WHERE n < 140737488355328),
                      (SELECT max(n) FROM pointsman.outbox_refused WHERE n < 140737488355328),
                      (SELECT last_value FROM pointsman.outbox_n WHERE is_called), 0) AS n) o

-- Sets the sequences of audit entries and of the outbox after all existing and assigned numbers. A large number that
-- was inserted manually must not exhaust the sequence.
SELECT setval('pointsman.audit_entry_n_seq', greatest(e.n, 1), e.n > 0),
       setval('pointsman.outbox_number', greatest(o.n, 1), o.n > 0)
FROM (SELECT greatest((SELECT max(n) FROM pointsman.audit_entry),
                      (SELECT last_value FROM pointsman.audit_entry_n_seq WHERE is_called), 0) AS n) e,
     (SELECT greatest((SELECT max(n) FROM pointsman.outbox WHERE n < 140737488355328),
                      (SELECT max(n) FROM pointsman.receipt WHERE n < 140737488355328),
                      (SELECT max(n) FROM pointsman.outbox_refused WHERE n < 140737488355328),
                      (SELECT last_value FROM pointsman.outbox_number WHERE is_called), 0) AS n) o

-- Brings a database back to what the migrations made of it. Whoever was left behind by a test that was killed is
-- disconnected first.
DO $$
DECLARE
    relation regclass;
BEGIN
    PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend';

    FOR relation IN SELECT inhrelid FROM pg_inherits JOIN pg_class ON oid = inhrelid
                    WHERE relnamespace = 'pointsman'::regnamespace AND relkind = 'r' AND relname ~ '_\d+$' LOOP
        EXECUTE format('DROP TABLE %s', relation);
    END LOOP;
    EXECUTE (SELECT 'TRUNCATE ' || string_agg(oid::regclass::text, ', ') || ' CASCADE' FROM pg_class
             WHERE relnamespace = 'pointsman'::regnamespace AND relkind = 'r' AND relname <> 'migration'
               AND pg_relation_size(oid) > 0);
    PERFORM setval(oid, 1, false) FROM pg_class
    WHERE relnamespace = 'pointsman'::regnamespace AND relkind = 'S';
    INSERT INTO pointsman.sequencer DEFAULT VALUES;
    INSERT INTO pointsman.outbox_mark DEFAULT VALUES;
END $$

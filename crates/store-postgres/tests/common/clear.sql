-- Brings a database back to what the migrations made of it, except that the first slices stay, because they take long to
-- make. Small tables are emptied row by row, which is quicker than giving them new files. Stores that were left behind by
-- a test that was killed are disconnected.
DO $$
DECLARE
    reach    record;
    slices   text[];
    first    text[];
    slice    text;
    relation regclass;
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'pointsman';

    SELECT journal_to, history_to INTO reach FROM pointsman.sequencer;
    slices := ARRAY (SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid
                     WHERE relnamespace = 'pointsman'::regnamespace AND relkind = 'r' AND relname ~ '_\d+$'
                     ORDER BY relname);
    first := ARRAY (SELECT name FROM unnest('{attempt_0,history_0,journal_0,log_0}'::text[]) name
                    WHERE CASE name WHEN 'journal_0' THEN reach.journal_to ELSE reach.history_to END = 250000);
    IF slices <> first OR reach.journal_to NOT IN (0, 250000) OR reach.history_to NOT IN (0, 250000) THEN
        FOREACH slice IN ARRAY slices LOOP
            EXECUTE format('DROP TABLE pointsman.%I', slice);
        END LOOP;
        SELECT 0 AS journal_to, 0 AS history_to INTO reach;
    END IF;
    -- Queues refer to handlers, and so come before them.
    FOR relation IN SELECT oid FROM pg_class
                    WHERE relnamespace = 'pointsman'::regnamespace AND relkind = 'r' AND relname <> 'migration'
                      AND pg_relation_size(oid) > 0
                    ORDER BY relname DESC LOOP
        EXECUTE format(CASE WHEN pg_relation_size(relation) < 200000 THEN 'DELETE FROM %s' ELSE 'TRUNCATE %s CASCADE' END,
                       relation);
    END LOOP;
    PERFORM setval(oid, 1, false) FROM pg_class
    WHERE relnamespace = 'pointsman'::regnamespace AND relkind = 'S';
    INSERT INTO pointsman.turn DEFAULT VALUES;
    INSERT INTO pointsman.version (version, journal_to, history_to) VALUES (0, reach.journal_to, reach.history_to);
    INSERT INTO pointsman.outbox_mark DEFAULT VALUES;
END $$

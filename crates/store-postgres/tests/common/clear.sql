-- Resets a database to the state after the migrations, except that the first partitions stay, because creating them is
-- slow. Small tables are emptied row by row, which is faster than TRUNCATE. Stores that a killed test left open are
-- disconnected.
DO $$
DECLARE
    partition_ends   record;
    partitions       text[];
    first_partitions text[];
    partition_name   text;
    relation         regclass;
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'pointsman';

    SELECT journal_end, history_end INTO partition_ends FROM pointsman.last_commit;
    partitions := ARRAY (SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid
                     WHERE relnamespace = 'pointsman'::regnamespace AND relkind = 'r' AND relname ~ '_\d+$'
                     ORDER BY relname);
    first_partitions := ARRAY (SELECT name FROM unnest('{attempt_0,history_0,journal_0,log_0}'::text[]) name
                    WHERE CASE name WHEN 'journal_0' THEN partition_ends.journal_end
                               ELSE partition_ends.history_end END = 250000);
    IF partitions <> first_partitions OR partition_ends.journal_end NOT IN (0, 250000)
       OR partition_ends.history_end NOT IN (0, 250000) THEN
        FOREACH partition_name IN ARRAY partitions LOOP
            EXECUTE format('DROP TABLE pointsman.%I', partition_name);
        END LOOP;
        SELECT 0 AS journal_end, 0 AS history_end INTO partition_ends;
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
    INSERT INTO pointsman.write_lock DEFAULT VALUES;
    INSERT INTO pointsman.commit_version (version, journal_end, history_end)
    VALUES (0, partition_ends.journal_end, partition_ends.history_end);
    INSERT INTO pointsman.outbox_progress DEFAULT VALUES;
END $$

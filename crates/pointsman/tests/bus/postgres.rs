//! Units of work on PostgreSQL, where each has its own connection and transaction.

use pointsman::{CommitError, SqlValue};

use super::*;

fn create_postgres_database() -> String {
    pointsman_testing::shared_postgres().unwrap().create_database().unwrap()
}

/// Starts a bus on a database that also has a table of the program.
async fn start_bus_with_record_table(url: &str) -> Bus {
    let bus = Bus::builder(url).start().await.unwrap();
    let mut uow = bus.unit_of_work();
    uow.execute(
        "CREATE TABLE IF NOT EXISTS records (id bigint PRIMARY KEY, title text NOT NULL, at timestamptz, \
         next bigint REFERENCES records DEFERRABLE INITIALLY DEFERRED)",
        [],
    );
    uow.commit().await.unwrap();
    bus
}

fn insert_record(uow: &mut UnitOfWork, id: i64) {
    uow.execute("INSERT INTO records (id, title) VALUES ($1, $2)", [id.into(), "a title".into()]);
}

async fn read_record_ids(bus: &Bus) -> Vec<i64> {
    let (probe, mut received) = HandlerProbe::new();
    let mut uow = bus.unit_of_work();
    uow.before_commit(move |tx| {
        let rows = tx.query("SELECT id FROM records ORDER BY id", &[])?;
        let id = |value: &SqlValue| if let SqlValue::Integer(id) = value { *id } else { panic!("{value:?}") };
        probe.send(rows.iter().map(|row| id(row.get(0).unwrap())).collect());
        Ok(())
    });
    uow.commit().await.unwrap();
    receive_probed_value(&mut received).await
}

#[tokio::test]
async fn events_exist_if_and_only_if_the_commit_succeeded() {
    let url = create_postgres_database();
    let bus = start_bus_with_record_table(&url).await;
    let commits: Vec<_> = (0..30u64)
        .map(|id| {
            let mut uow = bus.unit_of_work();
            insert_record(&mut uow, id as i64);
            uow.emit(RecordPublished::new(id)).unwrap();
            match id % 3 {
                0 => uow.before_commit(|_| Err("every third unit of work fails".into())),
                1 if id % 2 == 0 => uow.before_commit(|_| panic!("some units of work panic")),
                _ => {}
            }
            tokio::spawn(uow.commit())
        })
        .collect();
    let mut committed = Vec::new();
    for (id, commit) in commits.into_iter().enumerate() {
        if let Ok(committed_events) = commit.await.unwrap() {
            assert_eq!(
                (committed_events.journaled_events(), committed_events.outbox_receipts().len()),
                (None, 1)
            );
            assert_eq!(with_timeout(committed_events.wait_until_journaled()).await.unwrap().len(), 1);
            committed.push(id as i64);
        }
    }
    assert_eq!(committed.len(), 15);
    assert_eq!(read_record_ids(&bus).await, committed);
    let mut journaled: Vec<_> = read_emitted_events(&bus)
        .await
        .iter()
        .map(|event| event.parse_value::<RecordPublished>().unwrap().id as i64)
        .collect();
    journaled.sort_unstable();
    assert_eq!(journaled, committed);
    bus.stop().await;
}

#[tokio::test]
async fn events_keep_the_order_of_operations_and_their_exact_values() {
    let bus = start_bus_with_record_table(&create_postgres_database()).await;
    let mut uow = bus.unit_of_work();
    uow.set_context(RequestContext::new().request_id("r-1"));
    uow.emit(RecordPublished::new(1)).unwrap();
    uow.before_commit(|tx| {
        let rows = tx.query(
            "INSERT INTO records VALUES (1, 'new', now()) RETURNING id, at::text, at > '1970-01-01'",
            &[],
        )?;
        let [Some(SqlValue::Integer(id)), Some(SqlValue::Text(_)), Some(SqlValue::Integer(1))] =
            [0, 1, 2].map(|n| rows[0].get(n))
        else {
            return Err(format!("{rows:?}").into());
        };
        Ok(tx.emit(RecordIndexed { id: *id as u64 })?)
    });
    let delayed = EmitOptions::new().priority(7).tenant("shop").delay(Duration::from_secs(3600));
    uow.emit_with(RecordPublished::new(1), delayed).unwrap();
    let emitted = with_timeout(uow.commit().await.unwrap().wait_until_journaled()).await.unwrap();
    let events = read_emitted_events(&bus).await;
    let journaled: Vec<_> = events
        .iter()
        .map(|event| {
            (event.id, event.event_type.as_str(), event.context["request_id"].as_str(), event.tenant.as_str())
        })
        .collect();
    assert_eq!(
        journaled,
        [
            (emitted[0].id, "record.published", "r-1", "default"),
            (emitted[1].id, "record.indexed", "r-1", "default"),
            (emitted[2].id, "record.published", "r-1", "shop"),
        ]
    );
    assert_eq!((emitted[1].prev, emitted[2].prev), (Some(emitted[0].id), None));
    let expected_value = serde_json::to_string(&RecordPublished::new(1)).unwrap();
    assert_eq!(events[0].value.as_str(), expected_value, "byte for byte");
    bus.stop().await;
}

#[tokio::test]
async fn events_committed_by_a_handler_name_their_cause() {
    let bus = Bus::builder(&create_postgres_database())
        .handler("index", |event: RecordPublished, bus: Bus| async move {
            let mut uow = bus.unit_of_work();
            uow.emit(RecordIndexed { id: event.id })?;
            uow.commit().await?.wait_until_journaled().await?;
            Ok::<_, HandlerError>(())
        })
        .on::<RecordPublished>("index")
        .start()
        .await
        .unwrap();
    let mut uow = bus.unit_of_work();
    uow.emit(RecordPublished::new(1)).unwrap();
    let emitted = with_timeout(uow.commit().await.unwrap().wait_until_journaled()).await.unwrap();
    assert_eq!(wait_until_only_task_finished(&bus, &emitted[0]).await.error, None);
    let events = read_emitted_events(&bus).await;
    let cause = events[1].cause.unwrap();
    assert_eq!((events.len(), events[1].cause_depth(), cause.event), (2, 1, Some(emitted[0].id)));
    bus.stop().await;
}

#[tokio::test]
async fn statements_that_control_the_transaction_or_write_to_the_store_are_rejected() {
    let bus = start_bus_with_record_table(&create_postgres_database()).await;
    for sql in [
        "COMMIT",
        "/* /* */ */ commit",
        "ROLLBACK",
        "PREPARE TRANSACTION 'x'",
        "SET ROLE nobody",
        "BEGIN",
        "SAVEPOINT x",
        "LISTEN x",
        "DELETE FROM pointsman.task",
        "WITH gone AS (DELETE FROM \"pointsman\".task RETURNING 1) SELECT * FROM gone",
        "DROP SCHEMA pointsman CASCADE",
        "SELECT 1; COMMIT",
        "DO $$ BEGIN COMMIT; END $$",
    ] {
        let mut uow = bus.unit_of_work();
        insert_record(&mut uow, 1);
        uow.execute(sql, []);
        uow.emit(RecordPublished::new(1)).unwrap();
        let refused = uow.commit().await;
        assert!(matches!(refused, Err(CommitError::Operation(_))), "{sql}: {refused:?}");
    }
    assert!(read_record_ids(&bus).await.is_empty() && read_emitted_events(&bus).await.is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn unit_of_work_is_rolled_back_if_the_database_rejects_a_part() {
    let bus = start_bus_with_record_table(&create_postgres_database()).await;
    // The operation ignores a failed statement, but the database does not.
    let mut uow = bus.unit_of_work();
    insert_record(&mut uow, 1);
    uow.before_commit(|tx| {
        assert!(tx.execute("INSERT INTO nowhere VALUES (1)", &[]).is_err());
        let after = tx.execute("INSERT INTO records (id, title) VALUES (2, 'x')", &[]).unwrap_err();
        assert!(after.to_string().contains("rolled the whole transaction back"), "{after}");
        Ok(())
    });
    uow.emit(RecordPublished::new(1)).unwrap();
    assert!(matches!(uow.commit().await, Err(CommitError::Operation(_))));
    // A deferred constraint is checked at the commit.
    let mut uow = bus.unit_of_work();
    uow.execute("INSERT INTO records VALUES (1, 'x', NULL, 99)", []);
    uow.emit(RecordPublished::new(1)).unwrap();
    let refused = uow.commit().await;
    assert!(
        matches!(&refused, Err(CommitError::Operation(error)) if error.to_string().contains("foreign key")),
        "{refused:?}"
    );
    // The error about a column type that cannot be read says what to do.
    let mut uow = bus.unit_of_work();
    uow.before_commit(|tx| Ok(tx.query("SELECT now() AS at", &[]).map(|_| ())?));
    let refused = uow.commit().await;
    assert!(
        matches!(&refused, Err(CommitError::Operation(error)) if error.to_string().contains("at::text")),
        "{refused:?}"
    );
    assert!(read_record_ids(&bus).await.is_empty() && read_emitted_events(&bus).await.is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn values_round_trip_through_column_types() {
    let bus = start_bus_with_record_table(&create_postgres_database()).await;
    let mut uow = bus.unit_of_work();
    uow.execute(
        "CREATE TABLE every (small smallint, yes boolean, wide double precision, exact numeric, day date, id uuid, \
         doc jsonb, raw bytea, none text)",
        [],
    );
    let uuid = "5794f0f0-d7f3-8550-a557-000000000001";
    uow.execute(
        "INSERT INTO every VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        [
            SqlValue::from(7),
            true.into(),
            1.5.into(),
            "0.10".into(),
            "2026-01-02".into(),
            uuid.into(),
            r#"{"a": [1]}"#.into(),
            vec![0, 255].into(),
            SqlValue::Null,
        ],
    );
    let (probe, mut received) = HandlerProbe::new();
    uow.before_commit(move |tx| {
        let sql =
            "SELECT small, yes, wide, exact::text, day::text, id, doc, raw, none FROM every WHERE small = $1";
        let rows = tx.query(sql, &[7.into()])?;
        probe.send((0..9).map(|column| rows[0].get(column).unwrap().clone()).collect::<Vec<_>>());
        Ok(())
    });
    uow.commit().await.unwrap();
    let expected: Vec<SqlValue> = vec![
        7.into(),
        1.into(),
        1.5.into(),
        "0.10".into(),
        "2026-01-02".into(),
        uuid.into(),
        r#"{"a": [1]}"#.into(),
        vec![0, 255].into(),
        SqlValue::Null,
    ];
    assert_eq!(receive_probed_value(&mut received).await, expected);
    bus.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_unit_of_work_does_not_block_others() {
    let bus = start_bus_with_record_table(&create_postgres_database()).await;
    let (started, mut commit_started) = HandlerProbe::new();
    let (resume, resumed) = std::sync::mpsc::channel::<()>();
    let mut uow = bus.unit_of_work();
    insert_record(&mut uow, 1);
    uow.before_commit(move |_| {
        started.send(());
        Ok(resumed.recv()?)
    });
    uow.emit(RecordPublished::new(1)).unwrap();
    let slow_commit = tokio::spawn(uow.commit());
    receive_probed_value(&mut commit_started).await;
    for id in 2..5 {
        with_timeout(bus.emit(RecordPublished::new(id))).await.unwrap();
    }
    let mut quick_unit_of_work = bus.unit_of_work();
    insert_record(&mut quick_unit_of_work, 2);
    with_timeout(quick_unit_of_work.commit()).await.unwrap();
    resume.send(()).unwrap();
    with_timeout(slow_commit).await.unwrap().unwrap();
    assert_eq!(read_record_ids(&bus).await, [1, 2]);
    bus.stop().await;
}

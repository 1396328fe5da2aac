//! The same on PostgreSQL, where a unit of work is a transaction of its own.

use pointsman::{CommitError, Value};

use super::*;

fn database() -> String {
    pointsman_testing::shared().unwrap().create_database().unwrap()
}

/// A bus on a database that has a table of the program's own.
async fn bus_with_records(url: &str) -> Bus {
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

fn insert(uow: &mut UnitOfWork, id: i64) {
    uow.execute("INSERT INTO records (id, title) VALUES ($1, $2)", [id.into(), "a title".into()]);
}

async fn rows(bus: &Bus) -> Vec<i64> {
    let (probe, mut seen) = Probe::new();
    let mut uow = bus.unit_of_work();
    uow.on_commit(move |tx| {
        let rows = tx.query("SELECT id FROM records ORDER BY id", &[])?;
        let id = |value: &Value| if let Value::Integer(id) = value { *id } else { panic!("{value:?}") };
        probe.saw(rows.iter().map(|row| id(row.get(0).unwrap())).collect());
        Ok(())
    });
    uow.commit().await.unwrap();
    saw(&mut seen).await
}

#[tokio::test]
async fn events_exist_if_and_only_if_the_commit_did() {
    let url = database();
    let bus = bus_with_records(&url).await;
    let committing: Vec<_> = (0..30u64)
        .map(|id| {
            let mut uow = bus.unit_of_work();
            insert(&mut uow, id as i64);
            uow.emit(Published::new(id)).unwrap();
            match id % 3 {
                0 => uow.on_commit(|_| Err("every third".into())),
                1 if id % 2 == 0 => uow.on_commit(|_| panic!("some")),
                _ => {}
            }
            tokio::spawn(uow.commit())
        })
        .collect();
    let mut committed = Vec::new();
    for (id, commit) in committing.into_iter().enumerate() {
        if let Ok(done) = commit.await.unwrap() {
            assert_eq!((done.events(), done.receipts().len()), (None, 1));
            assert_eq!(within(done.journaled()).await.unwrap().len(), 1);
            committed.push(id as i64);
        }
    }
    assert_eq!(committed.len(), 15);
    assert_eq!(rows(&bus).await, committed);
    let mut told: Vec<_> =
        journal(&bus).await.iter().map(|event| event.to::<Published>().unwrap().id as i64).collect();
    told.sort_unstable();
    assert_eq!(told, committed);
    bus.stop().await;
}

#[tokio::test]
async fn events_stand_in_the_order_of_their_operations_as_they_were_said() {
    let bus = bus_with_records(&database()).await;
    let mut uow = bus.unit_of_work();
    uow.context(RequestContext::new().request_id("r-1"));
    uow.emit(Published::new(1)).unwrap();
    uow.on_commit(|tx| {
        let rows = tx.query(
            "INSERT INTO records VALUES (1, 'new', now()) RETURNING id, at::text, at > '1970-01-01'",
            &[],
        )?;
        let [Some(Value::Integer(id)), Some(Value::Text(_)), Some(Value::Integer(1))] =
            [0, 1, 2].map(|n| rows[0].get(n))
        else {
            return Err(format!("{rows:?}").into());
        };
        Ok(tx.emit(Indexed { id: *id as u64 })?)
    });
    let late = Emit::new().priority(7).tenant("shop").delay(Duration::from_secs(3600));
    uow.emit_with(Published::new(1), late).unwrap();
    let emitted = within(uow.commit().await.unwrap().journaled()).await.unwrap();
    let events = journal(&bus).await;
    let told: Vec<_> = events
        .iter()
        .map(|event| {
            (event.id, event.kind.as_str(), event.context["request_id"].as_str(), event.tenant.as_str())
        })
        .collect();
    assert_eq!(
        told,
        [
            (emitted[0].id, "record.published", "r-1", "default"),
            (emitted[1].id, "record.indexed", "r-1", "default"),
            (emitted[2].id, "record.published", "r-1", "shop"),
        ]
    );
    assert_eq!((emitted[1].prev, emitted[2].prev), (Some(emitted[0].id), None));
    let said = serde_json::to_string(&Published::new(1)).unwrap();
    assert_eq!(events[0].value.as_str(), said, "to the letter");
    bus.stop().await;
}

#[tokio::test]
async fn handlers_run_and_what_they_commit_names_its_cause() {
    let bus = Bus::builder(&database())
        .handler("index", |event: Published, bus: Bus| async move {
            let mut uow = bus.unit_of_work();
            uow.emit(Indexed { id: event.id })?;
            uow.commit().await?.journaled().await?;
            Ok::<_, HandlerError>(())
        })
        .on::<Published>("index")
        .start()
        .await
        .unwrap();
    let mut uow = bus.unit_of_work();
    uow.emit(Published::new(1)).unwrap();
    let emitted = within(uow.commit().await.unwrap().journaled()).await.unwrap();
    assert_eq!(only_task(&bus, &emitted[0]).await.error, None);
    let events = journal(&bus).await;
    let cause = events[1].cause.unwrap();
    assert_eq!((events.len(), events[1].depth(), cause.event), (2, 1, Some(emitted[0].id)));
    bus.stop().await;
}

#[tokio::test]
async fn a_unit_keeps_its_hands_off_the_store_and_the_transaction() {
    let bus = bus_with_records(&database()).await;
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
        insert(&mut uow, 1);
        uow.execute(sql, []);
        uow.emit(Published::new(1)).unwrap();
        let refused = uow.commit().await;
        assert!(matches!(refused, Err(CommitError::Operation(_))), "{sql}: {refused:?}");
    }
    assert!(rows(&bus).await.is_empty() && journal(&bus).await.is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn what_the_database_refuses_is_rolled_back_whole() {
    let bus = bus_with_records(&database()).await;
    // An operation that makes nothing of a failure: the database does.
    let mut uow = bus.unit_of_work();
    insert(&mut uow, 1);
    uow.on_commit(|tx| {
        assert!(tx.execute("INSERT INTO nowhere VALUES (1)", &[]).is_err());
        let after = tx.execute("INSERT INTO records (id, title) VALUES (2, 'x')", &[]).unwrap_err();
        assert!(after.to_string().contains("rolled the whole transaction back"), "{after}");
        Ok(())
    });
    uow.emit(Published::new(1)).unwrap();
    assert!(matches!(uow.commit().await, Err(CommitError::Operation(_))));
    // What is checked at the end.
    let mut uow = bus.unit_of_work();
    uow.execute("INSERT INTO records VALUES (1, 'x', NULL, 99)", []);
    uow.emit(Published::new(1)).unwrap();
    let refused = uow.commit().await;
    assert!(
        matches!(&refused, Err(CommitError::Operation(why)) if why.to_string().contains("foreign key")),
        "{refused:?}"
    );
    // A type that is not read as it is says what to do.
    let mut uow = bus.unit_of_work();
    uow.on_commit(|tx| Ok(tx.query("SELECT now() AS at", &[]).map(|_| ())?));
    let refused = uow.commit().await;
    assert!(
        matches!(&refused, Err(CommitError::Operation(why)) if why.to_string().contains("at::text")),
        "{refused:?}"
    );
    assert!(rows(&bus).await.is_empty() && journal(&bus).await.is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn values_are_what_the_database_makes_of_them() {
    let bus = bus_with_records(&database()).await;
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
            Value::from(7),
            true.into(),
            1.5.into(),
            "0.10".into(),
            "2026-01-02".into(),
            uuid.into(),
            r#"{"a": [1]}"#.into(),
            vec![0, 255].into(),
            Value::Null,
        ],
    );
    let (probe, mut seen) = Probe::new();
    uow.on_commit(move |tx| {
        let sql =
            "SELECT small, yes, wide, exact::text, day::text, id, doc, raw, none FROM every WHERE small = $1";
        let rows = tx.query(sql, &[7.into()])?;
        probe.saw((0..9).map(|column| rows[0].get(column).unwrap().clone()).collect::<Vec<_>>());
        Ok(())
    });
    uow.commit().await.unwrap();
    let wanted: Vec<Value> = vec![
        7.into(),
        1.into(),
        1.5.into(),
        "0.10".into(),
        "2026-01-02".into(),
        uuid.into(),
        r#"{"a": [1]}"#.into(),
        vec![0, 255].into(),
        Value::Null,
    ];
    assert_eq!(saw(&mut seen).await, wanted);
    bus.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_takes_its_time_is_in_nobodys_way() {
    let bus = bus_with_records(&database()).await;
    let (begun, mut writing) = Probe::new();
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let mut uow = bus.unit_of_work();
    insert(&mut uow, 1);
    uow.on_commit(move |_| {
        begun.saw(());
        Ok(waits.recv()?)
    });
    uow.emit(Published::new(1)).unwrap();
    let slow = tokio::spawn(uow.commit());
    saw(&mut writing).await;
    for id in 2..5 {
        within(bus.emit(Published::new(id))).await.unwrap();
    }
    let mut quick = bus.unit_of_work();
    insert(&mut quick, 2);
    within(quick.commit()).await.unwrap();
    go_on.send(()).unwrap();
    within(slow).await.unwrap().unwrap();
    assert_eq!(rows(&bus).await, [1, 2]);
    bus.stop().await;
}

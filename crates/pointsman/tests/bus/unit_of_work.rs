use std::sync::{Arc, Mutex};

use pointsman::{CommitError, Value};

use super::*;

/// What happened, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Writes a diary of its hooks, and fails or panics if told to.
struct Op {
    name: &'static str,
    diary: Diary,
    on_commit: fn() -> Result<(), BoxError>,
}

impl Op {
    fn new(name: &'static str, diary: &Diary) -> Self {
        Self { name, diary: diary.clone(), on_commit: || Ok(()) }
    }
}

impl Operation for Op {
    fn on_register(&mut self, _: &mut UnitOfWork) -> Result<(), BoxError> {
        self.diary.note(format!("{} registered", self.name));
        Ok(())
    }

    fn on_commit(&mut self, _: &mut Tx<'_>) -> Result<(), BoxError> {
        self.diary.note(format!("{} commits", self.name));
        (self.on_commit)()
    }

    fn on_post_commit(&mut self) {
        self.diary.note(format!("{} committed", self.name));
    }

    fn on_rollback(&mut self) {
        self.diary.note(format!("{} rolled back", self.name));
    }
}

/// A bus whose file has a table of the program's own.
async fn bus_with_records(home: &Home) -> Bus {
    let bus = Bus::builder(&home.url()).start().await.unwrap();
    let mut uow = bus.unit_of_work();
    uow.execute("CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, title TEXT NOT NULL)", []);
    uow.commit().await.unwrap();
    bus
}

/// The ids in the table, read by a unit of work that changes nothing.
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

fn insert(uow: &mut UnitOfWork, id: i64) {
    uow.execute("INSERT INTO records VALUES (?1, ?2)", [id.into(), "a title".into()]);
}

#[tokio::test]
async fn hooks_run_in_order_and_after_the_commit() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let diary = Diary::default();
    let mut uow = bus.unit_of_work();
    uow.register(Op::new("a", &diary)).unwrap();
    uow.register(Op::new("b", &diary)).unwrap();
    let last = diary.clone();
    uow.on_post_commit(move || last.note("closure"));
    uow.commit().await.unwrap();
    let expected =
        ["a registered", "b registered", "a commits", "b commits", "a committed", "b committed", "closure"];
    assert_eq!(diary.read(), expected);
    bus.stop().await;
}

#[tokio::test]
async fn one_failure_rolls_everything_back_in_reverse() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let failures: [fn() -> Result<(), BoxError>; 2] = [|| Err("no".into()), || panic!("no")];
    for failure in failures {
        let diary = Diary::default();
        let mut uow = bus.unit_of_work();
        insert(&mut uow, 1);
        uow.emit(Published::new(1)).unwrap();
        uow.register(Op::new("a", &diary)).unwrap();
        uow.register(Op { on_commit: failure, ..Op::new("b", &diary) }).unwrap();
        uow.register(Op::new("c", &diary)).unwrap();
        let never = diary.clone();
        uow.on_post_commit(move || never.note("never"));
        let fault = uow.commit().await.unwrap_err();
        assert!(matches!(&fault, CommitError::Operation(why) if why.to_string().contains("no")), "{fault}");
        assert_eq!(
            diary.read()[3..],
            ["a commits", "b commits", "c rolled back", "b rolled back", "a rolled back"]
        );
    }
    assert!(rows(&bus).await.is_empty());
    assert!(journal(&bus).await.is_empty());

    // The writer has taken no harm.
    let mut uow = bus.unit_of_work();
    insert(&mut uow, 1);
    uow.commit().await.unwrap();
    assert_eq!(rows(&bus).await, [1]);
    bus.stop().await;
}

#[tokio::test]
async fn a_statement_that_fails_is_a_failed_operation() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    for sql in ["INSERT INTO nowhere VALUES (1)", "not sql at all", "INSERT INTO records (id) VALUES (1)"] {
        let mut uow = bus.unit_of_work();
        insert(&mut uow, 1);
        uow.execute(sql, []);
        uow.emit(Published::new(1)).unwrap();
        assert!(matches!(uow.commit().await, Err(CommitError::Operation(_))), "{sql}");
    }
    assert!(rows(&bus).await.is_empty());
    assert!(journal(&bus).await.is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn dropped_it_leaves_no_trace() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let diary = Diary::default();
    let mut uow = bus.unit_of_work();
    insert(&mut uow, 1);
    uow.register(Op::new("a", &diary)).unwrap();
    uow.register(Op::new("b", &diary)).unwrap();
    uow.emit(Published::new(1)).unwrap();
    drop(uow);
    assert_eq!(diary.read()[2..], ["b rolled back", "a rolled back"]);
    assert!(rows(&bus).await.is_empty());
    assert!(journal(&bus).await.is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn events_exist_if_and_only_if_the_commit_did() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let committing: Vec<_> = (0..60u64)
        .map(|id| {
            let mut uow = bus.unit_of_work();
            insert(&mut uow, id as i64);
            uow.emit(Published::new(id)).unwrap();
            if id % 3 == 0 {
                uow.on_commit(|_| Err("every third".into()));
            }
            tokio::spawn(uow.commit())
        })
        .collect();
    let mut committed = Vec::new();
    for (id, commit) in committing.into_iter().enumerate() {
        if commit.await.unwrap().is_ok() {
            committed.push(id as i64);
        }
    }
    assert_eq!(committed.len(), 40);
    bus.stop().await;

    let bus = bus_with_records(&home).await;
    assert_eq!(rows(&bus).await, committed);
    let mut told: Vec<_> =
        journal(&bus).await.iter().map(|event| event.to::<Published>().unwrap().id as i64).collect();
    told.sort_unstable();
    assert_eq!(told, committed);
    bus.stop().await;
}

#[tokio::test]
async fn a_type_that_the_stream_uses_itself_is_refused() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let mut uow = bus.unit_of_work();
    let refused = uow.emit(NamedLikeAFrame {}).unwrap_err().to_string();
    assert!(refused.contains("task is the name of a frame of the event stream"), "{refused}");
    bus.stop().await;
}

#[tokio::test]
async fn events_stand_in_the_order_of_their_operations_and_know_what_the_transaction_knows() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let mut uow = bus.unit_of_work();
    uow.context(RequestContext::new().request_id("r-1"));
    uow.emit(Published::new(1)).unwrap();
    uow.on_commit(|tx| {
        let rows = tx.query("INSERT INTO records (title) VALUES ('new') RETURNING id", &[])?;
        let Some(Value::Integer(id)) = rows[0].get(0) else { return Err("no id".into()) };
        Ok(tx.emit(Indexed { id: *id as u64 })?)
    });
    let own = Emit::new().context(RequestContext::new().request_id("r-2"));
    uow.emit_with(Published::new(1), own).unwrap();
    let emitted = uow.commit().await.unwrap().journaled().await.unwrap();

    let events = journal(&bus).await;
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.id, event.kind.as_str(), event.context["request_id"].as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (emitted[0].id, "record.published", "r-1"),
            (emitted[1].id, "record.indexed", "r-1"),
            (emitted[2].id, "record.published", "r-2"),
        ]
    );
    assert_eq!(emitted[2].prev, Some(emitted[1].id));
    bus.stop().await;
}

#[tokio::test]
async fn handlers_of_committed_events_run() {
    let home = Home::new();
    let bus = Bus::builder(&home.url())
        .handler("h", |_: Published| async {})
        .on::<Published>("h")
        .start()
        .await
        .unwrap();
    let mut uow = bus.unit_of_work();
    uow.emit(Published::new(1)).unwrap();
    let emitted = uow.commit().await.unwrap().journaled().await.unwrap();
    assert_eq!(only_task(&bus, &emitted[0]).await.life.state.status(), Status::Done);
    bus.stop().await;
}

#[tokio::test]
async fn an_operation_may_bring_others_or_stay_out() {
    struct Publish(u64);
    impl Operation for Publish {
        fn on_register(&mut self, uow: &mut UnitOfWork) -> Result<(), BoxError> {
            if self.0 == 0 {
                return Err("there is no record 0".into());
            }
            insert(uow, self.0 as i64);
            Ok(uow.emit(Published::new(self.0))?)
        }
    }
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let mut uow = bus.unit_of_work();
    uow.register(Publish(0)).unwrap_err();
    uow.register(Publish(3)).unwrap();
    assert_eq!(uow.commit().await.unwrap().len(), 1);
    assert_eq!(rows(&bus).await, [3]);
    bus.stop().await;
}

#[tokio::test]
async fn a_commit_that_nobody_waits_for_runs_to_its_end() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let (probe, mut seen) = Probe::new();
    let (begun, mut writing) = Probe::new();
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let mut uow = bus.unit_of_work();
    uow.on_commit(move |_| {
        begun.saw(());
        Ok(waits.recv()?)
    });
    insert(&mut uow, 1);
    uow.on_post_commit(move || probe.saw(()));
    let caller = tokio::spawn(uow.commit());
    saw(&mut writing).await;
    caller.abort();
    go_on.send(()).unwrap();
    saw(&mut seen).await;
    assert_eq!(rows(&bus).await, [1]);
    bus.stop().await;
}

#[tokio::test]
async fn a_hook_that_panics_after_the_commit_stops_nobody() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let diary = Diary::default();
    let mut uow = bus.unit_of_work();
    uow.on_post_commit(|| panic!("too late to matter"));
    uow.register(Op::new("a", &diary)).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(diary.read().last().unwrap(), "a committed");
    bus.stop().await;
}

#[tokio::test]
async fn after_the_bus_has_stopped_nothing_is_committed() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let diary = Diary::default();
    let mut uow = bus.unit_of_work();
    uow.register(Op::new("a", &diary)).unwrap();
    bus.stop().await;
    assert!(matches!(uow.commit().await, Err(CommitError::Store(_))));
    assert_eq!(diary.read(), ["a registered", "a rolled back"]);
}

#[tokio::test]
async fn its_context_is_held_to_the_limits_of_every_other() {
    let home = Home::new();
    let bus = bus_with_records(&home).await;
    let mut uow = bus.unit_of_work();
    uow.context(RequestContext::new().with("session", "x".repeat(10_000)));
    insert(&mut uow, 1);
    uow.emit(Published::new(1)).unwrap();
    assert!(matches!(uow.commit().await, Err(CommitError::Operation(_))));
    assert!(rows(&bus).await.is_empty() && journal(&bus).await.is_empty());
    bus.stop().await;
}

use std::sync::{Arc, Mutex};

use pointsman::{CommitError, SqlValue};

use super::*;

/// The hooks that were called, in order.
#[derive(Clone, Default)]
struct HookLog(Arc<Mutex<Vec<String>>>);

impl HookLog {
    fn add(&self, entry: impl Into<String>) {
        self.0.lock().unwrap().push(entry.into());
    }

    fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Logs its hooks; its `before_commit` may fail or panic.
struct LoggingOperation {
    name: &'static str,
    hook_log: HookLog,
    before_commit_result: fn() -> Result<(), BoxError>,
}

impl LoggingOperation {
    fn new(name: &'static str, hook_log: &HookLog) -> Self {
        Self { name, hook_log: hook_log.clone(), before_commit_result: || Ok(()) }
    }
}

impl Operation for LoggingOperation {
    fn on_register(&mut self, _: &mut UnitOfWork) -> Result<(), BoxError> {
        self.hook_log.add(format!("{} registered", self.name));
        Ok(())
    }

    fn before_commit(&mut self, _: &mut Tx<'_>) -> Result<(), BoxError> {
        self.hook_log.add(format!("{} commits", self.name));
        (self.before_commit_result)()
    }

    fn on_post_commit(&mut self) {
        self.hook_log.add(format!("{} committed", self.name));
    }

    fn on_rollback(&mut self) {
        self.hook_log.add(format!("{} rolled back", self.name));
    }
}

/// Starts a bus whose file also has a table of the program.
async fn start_bus_with_record_table(folder: &SqliteStoreFolder) -> Bus {
    let bus = Bus::builder(&folder.url()).start().await.unwrap();
    let mut uow = bus.unit_of_work();
    uow.execute("CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, title TEXT NOT NULL)", []);
    uow.commit().await.unwrap();
    bus
}

/// Reads the ids in the table, by a unit of work that changes nothing.
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

fn insert_record(uow: &mut UnitOfWork, id: i64) {
    uow.execute("INSERT INTO records VALUES (?1, ?2)", [id.into(), "a title".into()]);
}

#[tokio::test]
async fn hooks_run_in_the_order_of_the_operations() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let hook_log = HookLog::default();
    let mut uow = bus.unit_of_work();
    uow.register(LoggingOperation::new("a", &hook_log)).unwrap();
    uow.register(LoggingOperation::new("b", &hook_log)).unwrap();
    let closure_log = hook_log.clone();
    uow.on_post_commit(move || closure_log.add("closure"));
    uow.commit().await.unwrap();
    let expected =
        ["a registered", "b registered", "a commits", "b commits", "a committed", "b committed", "closure"];
    assert_eq!(hook_log.entries(), expected);
    bus.stop().await;
}

#[tokio::test]
async fn failed_operation_rolls_back_and_runs_rollback_hooks_in_reverse_order() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let failures: [fn() -> Result<(), BoxError>; 2] =
        [|| Err("the operation failed".into()), || panic!("the operation failed")];
    for failure in failures {
        let hook_log = HookLog::default();
        let mut uow = bus.unit_of_work();
        insert_record(&mut uow, 1);
        uow.emit(RecordPublished::new(1)).unwrap();
        uow.register(LoggingOperation::new("a", &hook_log)).unwrap();
        uow.register(LoggingOperation {
            before_commit_result: failure,
            ..LoggingOperation::new("b", &hook_log)
        })
        .unwrap();
        uow.register(LoggingOperation::new("c", &hook_log)).unwrap();
        let unreached_log = hook_log.clone();
        uow.on_post_commit(move || unreached_log.add("must not run"));
        let error = uow.commit().await.unwrap_err();
        assert!(
            matches!(&error, CommitError::Operation(error) if error.to_string().contains("the operation failed")),
            "{error}"
        );
        assert_eq!(
            hook_log.entries()[3..],
            ["a commits", "b commits", "c rolled back", "b rolled back", "a rolled back"]
        );
    }
    assert!(read_record_ids(&bus).await.is_empty());
    assert!(read_emitted_events(&bus).await.is_empty());

    // The writer still works.
    let mut uow = bus.unit_of_work();
    insert_record(&mut uow, 1);
    uow.commit().await.unwrap();
    assert_eq!(read_record_ids(&bus).await, [1]);
    bus.stop().await;
}

#[tokio::test]
async fn failed_statement_rolls_the_unit_of_work_back() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    for sql in ["INSERT INTO nowhere VALUES (1)", "not sql at all", "INSERT INTO records (id) VALUES (1)"] {
        let mut uow = bus.unit_of_work();
        insert_record(&mut uow, 1);
        uow.execute(sql, []);
        uow.emit(RecordPublished::new(1)).unwrap();
        assert!(matches!(uow.commit().await, Err(CommitError::Operation(_))), "{sql}");
    }
    assert!(read_record_ids(&bus).await.is_empty());
    assert!(read_emitted_events(&bus).await.is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn dropped_unit_of_work_is_rolled_back() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let hook_log = HookLog::default();
    let mut uow = bus.unit_of_work();
    insert_record(&mut uow, 1);
    uow.register(LoggingOperation::new("a", &hook_log)).unwrap();
    uow.register(LoggingOperation::new("b", &hook_log)).unwrap();
    uow.emit(RecordPublished::new(1)).unwrap();
    drop(uow);
    assert_eq!(hook_log.entries()[2..], ["b rolled back", "a rolled back"]);
    assert!(read_record_ids(&bus).await.is_empty());
    assert!(read_emitted_events(&bus).await.is_empty());
    bus.stop().await;
}

#[tokio::test]
async fn events_exist_if_and_only_if_the_commit_succeeded() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let commits: Vec<_> = (0..60u64)
        .map(|id| {
            let mut uow = bus.unit_of_work();
            insert_record(&mut uow, id as i64);
            uow.emit(RecordPublished::new(id)).unwrap();
            if id % 3 == 0 {
                uow.before_commit(|_| Err("every third unit of work fails".into()));
            }
            tokio::spawn(uow.commit())
        })
        .collect();
    let mut committed = Vec::new();
    for (id, commit) in commits.into_iter().enumerate() {
        if commit.await.unwrap().is_ok() {
            committed.push(id as i64);
        }
    }
    assert_eq!(committed.len(), 40);
    bus.stop().await;

    let bus = start_bus_with_record_table(&folder).await;
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
async fn reserved_event_type_is_rejected() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let mut uow = bus.unit_of_work();
    let refused = uow.emit(ReservedTypeEvent {}).unwrap_err().to_string();
    assert!(refused.contains("task is the name of a frame of the event stream"), "{refused}");
    bus.stop().await;
}

#[tokio::test]
async fn events_keep_the_order_of_operations_and_can_contain_query_results() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let mut uow = bus.unit_of_work();
    uow.set_context(RequestContext::new().request_id("r-1"));
    uow.emit(RecordPublished::new(1)).unwrap();
    uow.before_commit(|tx| {
        let rows = tx.query("INSERT INTO records (title) VALUES ('new') RETURNING id", &[])?;
        let Some(SqlValue::Integer(id)) = rows[0].get(0) else { return Err("no id".into()) };
        Ok(tx.emit(RecordIndexed { id: *id as u64 })?)
    });
    let own_context = EmitOptions::new().context(RequestContext::new().request_id("r-2"));
    uow.emit_with(RecordPublished::new(1), own_context).unwrap();
    let emitted = uow.commit().await.unwrap().wait_until_journaled().await.unwrap();

    let events = read_emitted_events(&bus).await;
    let journaled: Vec<_> = events
        .iter()
        .map(|event| (event.id, event.event_type.as_str(), event.context["request_id"].as_str()))
        .collect();
    assert_eq!(
        journaled,
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
    let folder = SqliteStoreFolder::new();
    let bus = Bus::builder(&folder.url())
        .handler("h", |_: RecordPublished| async {})
        .on::<RecordPublished>("h")
        .start()
        .await
        .unwrap();
    let mut uow = bus.unit_of_work();
    uow.emit(RecordPublished::new(1)).unwrap();
    let emitted = uow.commit().await.unwrap().wait_until_journaled().await.unwrap();
    assert_eq!(
        wait_until_only_task_finished(&bus, &emitted[0]).await.lifecycle.state.status(),
        TaskStatus::Done
    );
    bus.stop().await;
}

#[tokio::test]
async fn operation_may_add_others_or_reject_itself() {
    struct PublishOperation(u64);
    impl Operation for PublishOperation {
        fn on_register(&mut self, uow: &mut UnitOfWork) -> Result<(), BoxError> {
            if self.0 == 0 {
                return Err("there is no record 0".into());
            }
            insert_record(uow, self.0 as i64);
            Ok(uow.emit(RecordPublished::new(self.0))?)
        }
    }
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let mut uow = bus.unit_of_work();
    uow.register(PublishOperation(0)).unwrap_err();
    uow.register(PublishOperation(3)).unwrap();
    assert_eq!(uow.commit().await.unwrap().len(), 1);
    assert_eq!(read_record_ids(&bus).await, [3]);
    bus.stop().await;
}

#[tokio::test]
async fn commit_completes_although_its_caller_is_dropped() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let (probe, mut received) = HandlerProbe::new();
    let (started, mut commit_started) = HandlerProbe::new();
    let (resume, resumed) = std::sync::mpsc::channel::<()>();
    let mut uow = bus.unit_of_work();
    uow.before_commit(move |_| {
        started.send(());
        Ok(resumed.recv()?)
    });
    insert_record(&mut uow, 1);
    uow.on_post_commit(move || probe.send(()));
    let caller = tokio::spawn(uow.commit());
    receive_probed_value(&mut commit_started).await;
    caller.abort();
    resume.send(()).unwrap();
    receive_probed_value(&mut received).await;
    assert_eq!(read_record_ids(&bus).await, [1]);
    bus.stop().await;
}

#[tokio::test]
async fn panic_in_a_post_commit_hook_does_not_stop_other_hooks() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let hook_log = HookLog::default();
    let mut uow = bus.unit_of_work();
    uow.on_post_commit(|| panic!("a panic after the commit"));
    uow.register(LoggingOperation::new("a", &hook_log)).unwrap();
    uow.commit().await.unwrap();
    assert_eq!(hook_log.entries().last().unwrap(), "a committed");
    bus.stop().await;
}

#[tokio::test]
async fn commit_fails_after_the_bus_has_stopped() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let hook_log = HookLog::default();
    let mut uow = bus.unit_of_work();
    uow.register(LoggingOperation::new("a", &hook_log)).unwrap();
    bus.stop().await;
    assert!(matches!(uow.commit().await, Err(CommitError::Store(_))));
    assert_eq!(hook_log.entries(), ["a registered", "a rolled back"]);
}

#[tokio::test]
async fn context_of_a_unit_of_work_is_checked_against_the_limits() {
    let folder = SqliteStoreFolder::new();
    let bus = start_bus_with_record_table(&folder).await;
    let mut uow = bus.unit_of_work();
    uow.set_context(RequestContext::new().with_entry("session", "x".repeat(10_000)));
    insert_record(&mut uow, 1);
    uow.emit(RecordPublished::new(1)).unwrap();
    assert!(matches!(uow.commit().await, Err(CommitError::Operation(_))));
    assert!(read_record_ids(&bus).await.is_empty() && read_emitted_events(&bus).await.is_empty());
    bus.stop().await;
}

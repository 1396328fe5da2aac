//! A test engine on a real store, and helpers that wait for its effects.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use pointsman_core::chain::{Chain, ChainNode, ChainNodeId, ChainNodeRole, ChainPath, ChainStep};
use pointsman_core::journal::EventFilter;
use pointsman_core::route::HandlerBinding;
use pointsman_core::store::{AttemptResult, EmitBatch, EmitReceipt, NewCollectionRun, Tasks};
use pointsman_core::task::Task;
use pointsman_core::task::retry::Backoff;
use pointsman_core::{
    CollectionName, Event, EventId, EventType, HandlerDef, HandlerName, NewEvent, ObjectKey, SourceDef,
    TaskId, TaskStatus, Timestamp,
};
use pointsman_engine::handlers::command::{CommandHandler, CommandSpec};
use pointsman_engine::handlers::in_process::InProcessHandler;
use pointsman_engine::{
    Delivery, Engine, HandlerOutcome, HandlerSpec, Runner, ScheduleSpec, Settings, Setup, TaskChange,
};
use pointsman_store_sqlite::{Sqlite, SqliteStore};
use tokio::sync::broadcast;

/// The timeout of everything that a test waits for. It is so long that only a test that hangs reaches it.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn now() -> Timestamp {
    Timestamp::MIN.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap())
}

pub(crate) fn in_memory_store() -> SqliteStore {
    Sqlite::in_memory(now()).unwrap()
}

pub(crate) fn handler_name(text: &str) -> HandlerName {
    HandlerName::new(text).unwrap()
}

pub(crate) fn event_type(text: &str) -> EventType {
    EventType::new(text).unwrap()
}

pub(crate) fn keyed_event(type_name: &str, key: &str) -> NewEvent {
    NewEvent { key: Some(ObjectKey::new(key).unwrap()), ..NewEvent::new(event_type(type_name)) }
}

/// Builds the settings and the setup of a test engine.
#[derive(Default)]
pub(crate) struct TestEngineBuilder {
    pub(crate) settings: Settings,
    pub(crate) setup: Setup,
}

impl TestEngineBuilder {
    pub(crate) fn slots(mut self, slots: usize) -> Self {
        self.settings.slot_count = slots;
        self
    }

    /// Adds a handler that is retried twice, at once.
    pub(crate) fn handler<F, Fut>(self, handler: &str, function: F) -> Self
    where
        F: Fn(Delivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerOutcome> + Send + 'static,
    {
        self.handler_with_changed_spec(handler, |_| {}, function)
    }

    /// Like [`handler`](Self::handler), but `change` is applied to the handler's spec first.
    pub(crate) fn handler_with_changed_spec<F, Fut>(
        mut self,
        handler: &str,
        change: impl FnOnce(&mut HandlerSpec),
        function: F,
    ) -> Self
    where
        F: Fn(Delivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerOutcome> + Send + 'static,
    {
        let mut def = HandlerDef::new(handler_name(handler));
        def.retry.backoff = Backoff::Fixed;
        def.retry.delay = Duration::ZERO;
        let mut spec = HandlerSpec {
            def,
            attempt_timeout: TEST_TIMEOUT,
            runner: Some(Arc::new(InProcessHandler::new(function))),
        };
        change(&mut spec);
        self.setup.handlers.push(spec);
        self
    }

    /// Adds a handler with this runner, which is retried twice, at once; without a runner it is a pulled handler.
    pub(crate) fn handler_with_runner(
        mut self,
        handler: &str,
        runner: Option<Arc<dyn Runner>>,
        change: impl FnOnce(&mut HandlerDef),
    ) -> Self {
        let mut def = HandlerDef::new(handler_name(handler));
        def.retry.backoff = Backoff::Fixed;
        def.retry.delay = Duration::ZERO;
        def.pull = runner.is_none();
        change(&mut def);
        self.setup.handlers.push(HandlerSpec { def, attempt_timeout: TEST_TIMEOUT, runner });
        self
    }

    pub(crate) fn pulled_handler(self, handler: &str) -> Self {
        self.handler_with_runner(handler, None, |_| {})
    }

    /// Adds a source with these collections; a shell script synchronises each of them.
    pub(crate) fn source(self, source: &str, collections: &[&str], script: &str) -> Self {
        let argv = ["sh", "-c", script].map(ToOwned::to_owned).to_vec();
        let command =
            CommandHandler::new(CommandSpec { argv, env: BTreeMap::new(), working_dir: None, run_as: None })
                .unwrap();
        self.handler_with_runner(source, Some(Arc::new(command)), |def| {
            def.source = Some(source_def(collections))
        })
    }

    pub(crate) fn route(mut self, key: &str, handler: &str) -> Self {
        self.setup.routes.bind(event_type(key), HandlerBinding::new_queued(handler_name(handler)));
        self
    }

    pub(crate) fn route_sync(mut self, key: &str, handler: &str) -> Self {
        self.setup.routes.bind(event_type(key), HandlerBinding::new_sync(handler_name(handler)));
        self
    }

    pub(crate) fn chain(mut self, chain: Chain) -> Self {
        self.setup.chains.push(chain);
        self
    }

    pub(crate) fn schedule(mut self, schedule: ScheduleSpec) -> Self {
        self.setup.schedules.push(schedule);
        self
    }

    pub(crate) async fn start(self, store: &SqliteStore) -> Engine {
        Engine::start(Arc::new(store.clone()), self.settings, self.setup).await.unwrap()
    }
}

pub(crate) fn source_def(names: &[&str]) -> SourceDef {
    let to_collection = |name: &&str| (CollectionName::new(name).unwrap(), Default::default());
    SourceDef { tenant: Default::default(), collections: names.iter().map(to_collection).collect() }
}

/// A chain of these nodes.
pub(crate) fn chain(path: &str, nodes: Vec<ChainNode>) -> Chain {
    Chain { path: ChainPath::new(path).unwrap(), nodes }
}

pub(crate) fn chain_node_id(id: &str) -> ChainNodeId {
    ChainNodeId::new(id).unwrap()
}

/// A chain node whose step runs the handler of the same name.
pub(crate) fn step_node(id: &str, next: &str) -> ChainNode {
    step_node_with_change(id, next, |_| {})
}

pub(crate) fn step_node_with_change(id: &str, next: &str, change: impl FnOnce(&mut ChainStep)) -> ChainNode {
    let mut step =
        ChainStep { handler: handler_name(id), next: chain_node_id(next), on_error: None, retry: None };
    change(&mut step);
    ChainNode { id: chain_node_id(id), role: ChainNodeRole::Step(step) }
}

pub(crate) fn end_node(id: &str) -> ChainNode {
    ChainNode { id: chain_node_id(id), role: ChainNodeRole::End }
}

/// A run of `source/collection`.
pub(crate) fn new_collection_run(pair: &str) -> NewCollectionRun {
    NewCollectionRun { source_collection: pair.parse().unwrap(), priority: None }
}

pub(crate) async fn read_task(store: &SqliteStore, id: &TaskId) -> Task {
    store.read_task(id).await.unwrap().unwrap().0
}

/// Reads the log of a task.
pub(crate) async fn read_log(store: &SqliteStore, id: &TaskId) -> Vec<String> {
    let page = store.read_logs(id, 0, 100_000).await.unwrap().unwrap();
    page.lines.into_iter().map(|stored| stored.line.message).collect()
}

/// Polls until a condition holds; `description` names it if the test times out.
pub(crate) async fn wait_until<F: Future<Output = bool>>(description: &str, condition: impl Fn() -> F) {
    within_timeout(description, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

pub(crate) async fn emit(engine: &Engine, events: Vec<NewEvent>) -> EmitReceipt {
    engine.emit(EmitBatch { events, idempotency_key: None }).await.unwrap()
}

/// Waits for a future, at most [`TEST_TIMEOUT`].
pub(crate) async fn within_timeout<T>(description: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future)
        .await
        .unwrap_or_else(|_| panic!("timed out waiting for {description}"))
}

/// Receives the task changes of an engine.
pub(crate) struct TaskWatcher(broadcast::Receiver<TaskChange>);

impl TaskWatcher {
    pub(crate) fn new(engine: &Engine) -> Self {
        Self(engine.subscribe_task_changes())
    }

    pub(crate) async fn next_change(&mut self) -> TaskChange {
        within_timeout("a change", self.0.recv()).await.unwrap()
    }

    pub(crate) async fn wait_for_change(&mut self, is_match: impl Fn(&TaskChange) -> bool) -> TaskChange {
        loop {
            let change = self.next_change().await;
            if is_match(&change) {
                return change;
            }
        }
    }

    /// Waits for the next `count` tasks that end.
    pub(crate) async fn wait_for_ended_tasks(&mut self, count: usize) -> Vec<TaskChange> {
        let mut ended = Vec::new();
        while ended.len() < count {
            ended.push(
                self.wait_for_change(|c| matches!(c.status, TaskStatus::Done | TaskStatus::Error)).await,
            );
        }
        ended
    }
}

/// Records the calls of handlers, in order.
#[derive(Clone, Default)]
pub(crate) struct CallLog(Arc<Mutex<Vec<String>>>);

impl CallLog {
    pub(crate) fn record(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    pub(crate) fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A handler that records its own name and succeeds.
pub(crate) fn recording_handler(
    calls: &CallLog,
) -> impl Fn(Delivery) -> std::future::Ready<HandlerOutcome> + Send + Sync + 'static {
    let calls = calls.clone();
    move |delivery: Delivery| {
        calls.record(delivery.task.handler.as_str());
        std::future::ready(HandlerOutcome::succeeded())
    }
}

pub(crate) fn snoozed_outcome(until: Timestamp) -> HandlerOutcome {
    HandlerOutcome { result: AttemptResult::Snoozed { until }, ..HandlerOutcome::succeeded() }
}

/// The value of a counter or gauge without labels.
pub(crate) fn read_metric(engine: &Engine, name: &str) -> u64 {
    let text = engine.metrics().encode();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in\n{text}"))
}

/// Lists the events that were emitted so far, in order, without engine events.
pub(crate) async fn list_emitted_events(engine: &Engine) -> Vec<Arc<Event>> {
    let page =
        engine.observer().read_page(&EventFilter::default(), EventId::ZERO, None, 10_000).await.unwrap();
    page.events.into_iter().filter(|event| !event.is_engine_event()).collect()
}

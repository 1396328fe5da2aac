//! The engine: all services of one node, started and stopped together.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::engine_event::EngineState;
use pointsman_core::store::{EmitBatch, EmitReceipt, IdempotencyError, Registry, Store, StoreError};
use pointsman_core::{ErrorChain, HandlerName, Timestamp};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::attempt::CANCEL_GRACE;
use crate::bounded_run::restrict_setup_to_registered;
use crate::log_writer::LogWriterHandle;
use crate::metrics::Metrics;
use crate::node::{Node, NodeParts, build_registration};
use crate::observer::Observer;
use crate::pull::{LongPollBroker, LongPollService};
use crate::sequencer::{EmissionSender, Sequencer};
use crate::supervisor::{ServiceFailure, ServiceFailureRecorder, ServiceGroup};
use crate::time::{TimeSource, clock_monitor};
use crate::worker::Worker;
use crate::{Settings, Setup, TaskChange, clock, node_state_events, pruner, rescuer, scheduler};

/// How long a metrics scrape waits for the store to return the backlog.
const BACKLOG_READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Why an emit was not acknowledged. A refused emit stored nothing. After a store error the events may or may not be
/// stored; an idempotency key makes it safe to repeat the emit.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EmitError {
    /// The idempotency key was used for another request. Nothing was stored.
    #[error(transparent)]
    IdempotencyKeyConflict(#[from] IdempotencyError),
    /// The node's queue of unjournaled emissions is full. Nothing was stored.
    #[error("too many events are waiting to be journaled")]
    Overloaded,
    /// The node's clock is wrong. Nothing was stored; another node may accept the emit.
    #[error("{0}")]
    NodeClockWrong(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All services of one node. Cheap to clone; the services stop with [`Engine::stop`].
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
}

struct EngineInner {
    node: Arc<Node>,
    emission_sender: EmissionSender,
    running_services: Mutex<Option<RunningServices>>,
    failure_recorder: ServiceFailureRecorder,
    /// Serialises reconfigurations, so that the store and the node agree on the last one.
    reconfigure_lock: tokio::sync::Mutex<()>,
    /// Whether the journal has the engine event that announces the stop of this node.
    is_stop_published: AtomicBool,
}

/// The running services, in groups that are stopped one after the other.
struct RunningServices {
    /// Services that start new work: clock, scheduler, long-poll broker, pruner.
    new_work_services: ServiceGroup,
    /// Services that running attempts need: worker, rescuer, log writer, clock monitor.
    attempt_services: ServiceGroup,
    /// The sequencer, which serves producers.
    journaling_services: ServiceGroup,
    /// The observer, which serves readers of the journal until the end.
    observing_services: ServiceGroup,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("node", &self.inner.node.settings.node_name).finish_non_exhaustive()
    }
}

impl Engine {
    /// Joins the store as a node, registers the handlers and routes, and starts the services. A bounded run registers
    /// nothing: it runs only those of its handlers whose definition equals the registered one.
    pub async fn start(store: Arc<dyn Store>, settings: Settings, setup: Setup) -> Result<Self, StoreError> {
        settings.time_source.align_with_store(&*store).await?;
        let id = store.join_node(&settings.node_name, settings.time_source.now()).await?;
        let metrics = Arc::new(Metrics::default());
        node_state_events::publish_node_state(&*store, &settings, &metrics, EngineState::Starting).await;
        let setup = register_or_restrict_setup(&*store, &settings, setup).await?;
        let (log_writer, log_writer_service) = LogWriterHandle::new(store.clone(), metrics.clone());
        let (ended_attempt_sender, ended_receiver) = mpsc::unbounded_channel();
        let (pull_broker, pull_requests) = LongPollBroker::new();
        let parts = NodeParts { store, settings, metrics, log_writer, pull_broker, ended_attempt_sender };
        let node = Arc::new(Node::new(parts, id, setup));
        node.store.add_listener(node.wake_signals.clone());
        node.store_capabilities().await?;
        if node.settings.enabled_services.rescuer {
            rescuer::rescue_tasks(&node).await?;
        }

        let (emission_sender, sequencer) = Sequencer::new(node.clone());
        let failure_recorder = ServiceFailureRecorder::new(node.metrics.clone());
        let [mut new_work, mut attempts, mut journaling, mut observing] =
            std::array::from_fn(|_| ServiceGroup::new(failure_recorder.clone()));
        let enabled = node.settings.enabled_services;
        journaling.start_service("sequencer", sequencer);
        observing.start_service("observer", node.service_from_fn(run_journal_tail_filler));
        attempts.start_service("log writer", log_writer_service);
        attempts.start_service("clock monitor", node.service_from_fn(clock_monitor::run));
        attempts.start_service("rescuer", node.service_from_fn(rescuer::run));
        if enabled.worker {
            attempts.start_service("attempt checks", node.service_from_fn(rescuer::run_attempt_checks));
            attempts.start_service("worker", Worker::new(node.clone(), ended_receiver));
        }
        new_work.start_service("long-poll broker", LongPollService::new(node.clone(), pull_requests));
        if enabled.worker && enabled.scheduler {
            new_work.start_service("scheduler", node.service_from_fn(scheduler::run));
        }
        if enabled.clock {
            new_work.start_service("clock", node.service_from_fn(clock::run));
        }
        if enabled.pruner {
            new_work.start_service("pruner", node.service_from_fn(pruner::run));
        }
        let running_services = Mutex::new(Some(RunningServices {
            new_work_services: new_work,
            attempt_services: attempts,
            journaling_services: journaling,
            observing_services: observing,
        }));
        node_state_events::publish_node_state(
            &*node.store,
            &node.settings,
            &node.metrics,
            EngineState::Running,
        )
        .await;
        let (reconfigure_lock, is_stop_published) = Default::default();
        Ok(Self {
            inner: Arc::new(EngineInner {
                node,
                emission_sender,
                running_services,
                failure_recorder,
                reconfigure_lock,
                is_stop_published,
            }),
        })
    }

    /// Journals events and returns when they are durable.
    pub async fn emit(&self, emission: EmitBatch) -> Result<EmitReceipt, EmitError> {
        if let Some(reason) = self.time_source().out_of_service_reason() {
            return Err(EmitError::NodeClockWrong(reason));
        }
        let began = Instant::now();
        let receipt = self.inner.emission_sender.emit(emission).await?;
        self.inner.node.metrics.observe_emit_duration(began.elapsed());
        Ok(receipt)
    }

    /// Replaces handlers, routes and schedules. Running attempts keep the handler they started with.
    pub async fn reconfigure(&self, setup: Setup) -> Result<(), StoreError> {
        let _reconfigure_guard = self.inner.reconfigure_lock.lock().await;
        let node = &self.inner.node;
        node.apply_setup(register_or_restrict_setup(&*node.store, &node.settings, setup).await?);
        node.store_capabilities_or_retry_later().await;
        Ok(())
    }

    /// The active handlers, routes, schedules and chains.
    pub fn current_setup(&self) -> Arc<Setup> {
        self.inner.node.active_setup().setup.clone()
    }

    /// The store of this node.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.node.store
    }

    /// The time source of this node.
    pub fn time_source(&self) -> &TimeSource {
        &self.inner.node.time_source
    }

    /// The current time according to the store's clock.
    pub fn now(&self) -> Timestamp {
        self.time_source().now()
    }

    /// The observer, which reads the journal and waits for new events.
    pub fn observer(&self) -> &Observer {
        &self.inner.node.observer
    }

    /// Subscribes to the task changes of this node from now on. A slow receiver misses some.
    pub fn subscribe_task_changes(&self) -> broadcast::Receiver<TaskChange> {
        self.inner.node.task_changes.subscribe()
    }

    /// The metrics of this node.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.node.metrics
    }

    /// The metrics in the Prometheus text format, with the current slots and backlog.
    pub async fn metrics_text(&self) -> String {
        let node = &self.inner.node;
        node.metrics.set_slot_gauges(node.slots.total(), node.slots.busy_count());
        let queues = match timeout(BACKLOG_READ_TIMEOUT, node.store.list_queues(None)).await {
            Ok(read) => read.inspect_err(|_| node.count_store_error()).ok(),
            Err(_) => None,
        };
        node.metrics.set_backlog_gauges(queues.as_deref());
        node.metrics.encode()
    }

    /// Subscribes to a counter that changes whenever this node has stored log lines, so that followers of a log need
    /// not poll.
    pub fn subscribe_log_writes(&self) -> watch::Receiver<u64> {
        self.node().log_writer.subscribe_writes()
    }

    /// Waits until a bounded run has started its maximum of attempts and all of them have ended. Never returns for a
    /// node that is not a bounded run.
    pub async fn wait_for_bounded_run_end(&self) {
        self.node().slots.wait_until_budget_spent().await;
        self.node().running_attempts.wait_until_empty().await;
    }

    /// The failure of a service that made this node unable to work, if there was one. The services that still run
    /// continue, but the node should be stopped.
    pub fn service_failure(&self) -> Option<ServiceFailure> {
        self.inner.failure_recorder.first_failure()
    }

    /// Waits until a service has failed more often than it is restarted. Then stop the engine and exit, so that other
    /// nodes take over the tasks of this one.
    pub async fn wait_for_service_failure(&self) -> ServiceFailure {
        self.inner.failure_recorder.wait_for_failure().await
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.inner.node
    }

    /// Publishes in the journal that this node is about to stop, for followers that will be disconnected before the
    /// end. Everything else continues until [`Engine::stop`], which publishes it if it was not published yet.
    pub async fn publish_stopping(&self) {
        if !self.inner.is_stop_published.swap(true, Ordering::AcqRel) {
            let node = &self.inner.node;
            node_state_events::publish_node_state(
                &*node.store,
                &node.settings,
                &node.metrics,
                EngineState::Stopping,
            )
            .await;
        }
    }

    /// Stops claiming, lets running attempts end for up to `drain`, releases the rest without a retry, stops the
    /// services, and leaves the store's list of nodes.
    pub async fn stop(&self, drain: Duration) {
        let services = self.inner.running_services.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(services) = services else { return };
        let node = &self.inner.node;
        node.slots.close();
        self.publish_stopping().await;
        services.new_work_services.stop().await;
        node.redrive_jobs.stop_all_jobs().await;
        if timeout(drain, wait_until_idle(node)).await.is_err() {
            tracing::info!(
                ?drain,
                "attempts are still running after the drain time; cancelling them and releasing their tasks, which run \
                 again without a counted retry"
            );
            node.running_attempts.stop_all_attempts();
            // Cancelled attempts end within two grace periods; their log lines get a little more.
            if timeout(CANCEL_GRACE * 4, wait_until_idle(node)).await.is_err() {
                tracing::warn!(
                    "some attempts ignore their cancellation and are abandoned; other nodes take over their \
                     tasks after the lease"
                );
            }
        }
        services.attempt_services.stop().await;
        services.journaling_services.stop().await;
        node_state_events::publish_node_stopped(&*node.store, &node.settings, &node.metrics).await;
        services.observing_services.stop().await;
        if let Err(error) = node.store.remove_node(node.id(), node.time_source.now()).await {
            tracing::warn!(
                error = %ErrorChain(&error),
                "could not remove this node from the store; it is listed until its lease has expired"
            );
        }
    }
}

/// Registers the setup in the store. A bounded run instead restricts its setup to the registered one.
async fn register_or_restrict_setup(
    registry: &dyn Registry,
    settings: &Settings,
    setup: Setup,
) -> Result<Setup, StoreError> {
    match settings.bounded_run {
        Some(_) => Ok(restrict_setup_to_registered(setup, registry.read_merged_registration().await?)),
        None => {
            warn_of_handlers_that_registration_removes(registry, settings, &setup).await?;
            registry
                .register_definitions(build_registration(&setup, settings), settings.time_source.now())
                .await
                .map(|()| setup)
        }
    }
}

/// Warns if this node's registration removes handlers that another node of the same name still runs: nodes of one name
/// share a registration, and the last one to register wins.
async fn warn_of_handlers_that_registration_removes(
    registry: &dyn Registry,
    settings: &Settings,
    setup: &Setup,
) -> Result<(), StoreError> {
    let own_handlers: BTreeSet<_> = setup.handlers.iter().map(|spec| &spec.def.name).collect();
    for other_node in registry.list_nodes().await?.into_iter().filter(|node| !node.has_left_or_died) {
        let name = other_node
            .capabilities
            .registration_name
            .as_deref()
            .filter(|name| *name == settings.registration_name);
        let removed_handlers =
            other_node.capabilities.handlers.iter().filter(|handler| !own_handlers.contains(handler));
        let removed_handlers: Vec<_> = removed_handlers.map(HandlerName::as_str).collect();
        if let Some(name) = name.filter(|_| !removed_handlers.is_empty()) {
            tracing::warn!(
                node = other_node.name,
                handlers = removed_handlers.join(", "),
                "another node with the same name `{name}` has handlers that this node lacks; this node's registration \
                 replaces them and they get no more tasks. If the configurations differ on purpose, give one of the \
                 nodes another `name:`"
            );
        }
    }
    Ok(())
}

/// Waits until no attempt runs and none can start.
async fn wait_until_idle(node: &Node) {
    node.slots.wait_until_all_free().await;
    node.running_attempts.wait_until_empty().await;
}

async fn run_journal_tail_filler(node: Arc<Node>, stop: CancellationToken) {
    node.observer.run_tail_filler(stop).await;
}

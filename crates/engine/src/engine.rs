//! The engine: all rooms of one node, started and stopped together.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::engine_event::SchedulerState;
use pointsman_core::store::{Emission, Receipt, Refused, Store, StoreError};
use pointsman_core::{HandlerName, Timestamp};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::attempt::CANCEL_GRACE;
use crate::bounded_run::restrict_to_registered;
use crate::clock::Clock;
use crate::log_writer::LogWriterHandle;
use crate::metrics::Metrics;
use crate::node::{Node, NodeParts, build_registration};
use crate::observer::Observer;
use crate::pull::{LongPollBroker, LongPollService};
use crate::sequencer::{EmissionSender, Sequencer};
use crate::time::{TimeSource, monitor};
use crate::worker::Worker;
use crate::{Settings, Setup, TaskChange, engine_events, pruner, rescuer, scheduler};

/// How long a room may take to end: only one that waits for a store that hangs takes longer.
const SERVICE_STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long whoever asks for the metrics waits for the store.
const METRICS_READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Why an emit was not acknowledged. Of one that was refused nothing was stored; with what a store could not answer that is
/// not known, and an idempotency key makes it safe to repeat.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EmitError {
    #[error(transparent)]
    Refused(#[from] Refused),
    /// More is waiting to be journaled than the node holds in memory.
    #[error("too many events are waiting to be journaled")]
    Overloaded,
    /// The node's clock is off; nothing was stored. Another node may accept it.
    #[error("{0}")]
    OutOfService(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All rooms of one node. Cheap to clone; the rooms end with [`Engine::stop`].
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
}

struct EngineInner {
    node: Arc<Node>,
    emission_sender: EmissionSender,
    supervisor: Mutex<Option<ServiceSupervisor>>,
    /// Held while something else is set up, so that the store and the node agree on which came last.
    reconfigure_lock: tokio::sync::Mutex<()>,
    /// The journal tells that this node stops.
    is_stop_published: AtomicBool,
}

/// The running rooms, by when they are to end.
struct ServiceSupervisor {
    /// Those that begin something: clock, scheduler, desk, pruner.
    claiming: ServiceGroup,
    /// Those that running attempts need: worker, rescuer, logbook.
    executing: ServiceGroup,
    /// What serves producers: the sequencer.
    journaling: ServiceGroup,
    /// What serves observers to the last.
    observing: ServiceGroup,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("node", &self.inner.node.settings.node_name).finish_non_exhaustive()
    }
}

impl Engine {
    /// Joins the store as a node, registers the handlers and routes, and starts the rooms. A bounded run registers
    /// nothing: it runs those of its handlers that the store has just so.
    pub async fn start(store: Arc<dyn Store>, settings: Settings, setup: Setup) -> Result<Self, StoreError> {
        settings.time_source.align_with_store(&*store).await?;
        let id = store.join(&settings.node_name, settings.time_source.now()).await?;
        let metrics = Arc::new(Metrics::default());
        engine_events::publish_node_state(&*store, &settings, &metrics, SchedulerState::Starting).await;
        let setup = reconcile_setup(&*store, &settings, setup).await?;
        let (logbook, writer) = LogWriterHandle::new(store.clone(), metrics.clone());
        let (ended, ends) = mpsc::unbounded_channel();
        let (desk, letters) = LongPollBroker::new();
        let parts = NodeParts {
            store,
            settings,
            metrics,
            log_writer: logbook,
            pull_broker: desk,
            ended_attempts: ended,
        };
        let node = Arc::new(Node::new(parts, id, setup));
        node.store.listen(node.signals.clone());
        node.announce_capabilities().await?;
        if node.settings.services.rescuer {
            rescuer::rescue_tasks(&node).await?;
        }

        let (intake, sequencer) = Sequencer::new(node.clone());
        let [mut early, mut late, mut journaling, mut last] =
            std::array::from_fn(|_| ServiceGroup::default());
        let wanted = node.settings.services;
        journaling.start(|stop| sequencer.run(stop));
        last.start(|stop| run_journal_filler(node.clone(), stop));
        late.start(|stop| writer.run(stop));
        late.start(|stop| monitor::run(node.clone(), stop));
        late.start(|stop| rescuer::run(node.clone(), stop));
        if wanted.worker {
            late.start(|stop| rescuer::run_attempt_checks(node.clone(), stop));
            late.start(|stop| Worker::new(node.clone(), ends).run(stop));
        }
        early.start(|stop| LongPollService::new(node.clone(), letters).run(stop));
        if wanted.worker && wanted.scheduler {
            early.start(|stop| scheduler::run(node.clone(), stop));
        }
        if wanted.clock {
            early.start(|stop| Clock::new(node.clone()).run(stop));
        }
        if wanted.pruner {
            early.start(|stop| pruner::run(node.clone(), stop));
        }
        let rooms = Mutex::new(Some(ServiceSupervisor {
            claiming: early,
            executing: late,
            journaling,
            observing: last,
        }));
        engine_events::publish_node_state(
            &*node.store,
            &node.settings,
            &node.metrics,
            SchedulerState::Running,
        )
        .await;
        let (reconfiguring, stopping) = Default::default();
        Ok(Self {
            inner: Arc::new(EngineInner {
                node,
                emission_sender: intake,
                supervisor: rooms,
                reconfigure_lock: reconfiguring,
                is_stop_published: stopping,
            }),
        })
    }

    /// Journals events; answers when they are durable.
    pub async fn emit(&self, emission: Emission) -> Result<Receipt, EmitError> {
        if let Some(reason) = self.time_source().out_of_service_reason() {
            return Err(EmitError::OutOfService(reason));
        }
        let began = Instant::now();
        let receipt = self.inner.emission_sender.emit(emission).await?;
        self.inner.node.metrics.observe_emit(began.elapsed());
        Ok(receipt)
    }

    /// Replaces handlers, routes and schedules. Running attempts end as they began.
    pub async fn reconfigure(&self, setup: Setup) -> Result<(), StoreError> {
        let _one_at_a_time = self.inner.reconfigure_lock.lock().await;
        let node = &self.inner.node;
        node.apply_setup(reconcile_setup(&*node.store, &node.settings, setup).await?);
        node.announce_or_retry_later().await;
        Ok(())
    }

    /// What is set up now.
    pub fn setup(&self) -> Arc<Setup> {
        self.inner.node.active_setup().setup.clone()
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.node.store
    }

    /// The time source of this node.
    pub fn time_source(&self) -> &TimeSource {
        &self.inner.node.time
    }

    /// What time it is, by the store's clock.
    pub fn now(&self) -> Timestamp {
        self.time_source().now()
    }

    /// Reads the journal and waits for its growth.
    pub fn observer(&self) -> &Observer {
        &self.inner.node.observer
    }

    /// Task changes of this node from now on. A slow receiver misses some.
    pub fn subscribe_task_changes(&self) -> broadcast::Receiver<TaskChange> {
        self.inner.node.task_changes.subscribe()
    }

    pub fn metrics(&self) -> &Metrics {
        &self.inner.node.metrics
    }

    /// The metrics in the Prometheus text form, with the slots and the backlog as they stand now.
    pub async fn metrics_text(&self) -> String {
        let node = &self.inner.node;
        node.metrics.set_slots(node.slots.total(), node.slots.busy_count());
        let queues = match timeout(METRICS_READ_TIMEOUT, node.store.queues(None)).await {
            Ok(read) => read.inspect_err(|_| node.count_store_error()).ok(),
            Err(_) => None,
        };
        node.metrics.set_backlog(queues.as_deref());
        node.metrics.encode()
    }

    /// Changes after this node has stored log lines, so that who follows a log need not look all the time.
    pub fn subscribe_log_writes(&self) -> watch::Receiver<u64> {
        self.node().log_writer.subscribe_writes()
    }

    /// Returns when a bounded run has begun as many attempts as it may and none of them runs any more; never for
    /// a node without a bound.
    pub async fn wait_for_attempt_limit(&self) {
        self.node().slots.wait_until_budget_spent().await;
        self.node().running_attempts.wait_until_empty().await;
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.inner.node
    }

    /// Tells in the journal that this node is about to stop, for those who follow it and will not see the end. All else
    /// goes on until [`Engine::stop`], which tells it itself where nobody has.
    pub async fn publish_stopping(&self) {
        if !self.inner.is_stop_published.swap(true, Ordering::AcqRel) {
            let node = &self.inner.node;
            engine_events::publish_node_state(
                &*node.store,
                &node.settings,
                &node.metrics,
                SchedulerState::Stopping,
            )
            .await;
        }
    }

    /// Stops claiming, lets running attempts end for up to `drain`, gives the rest back without cost, leaves
    /// the store's list of nodes, and ends the rooms.
    pub async fn stop(&self, drain: Duration) {
        let rooms = self.inner.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(rooms) = rooms else { return };
        let node = &self.inner.node;
        node.slots.close();
        self.publish_stopping().await;
        rooms.claiming.stop().await;
        node.redrive_jobs.stop().await;
        if timeout(drain, wait_until_idle(node)).await.is_err() {
            tracing::info!("running attempts are given back");
            node.running_attempts.drain();
            // Cancelled attempts end within two graces; a little more for their log lines.
            if timeout(CANCEL_GRACE * 4, wait_until_idle(node)).await.is_err() {
                tracing::warn!("some attempts do not end; others will take their tasks over");
            }
        }
        rooms.executing.stop().await;
        rooms.journaling.stop().await;
        engine_events::publish_node_closed(&*node.store, &node.settings, &node.metrics).await;
        rooms.observing.stop().await;
        if let Err(error) = node.store.leave(node.id(), node.time.now()).await {
            tracing::warn!(%error, "the node could not sign off");
        }
    }
}

/// Has the store and this node agree on handlers and routes.
async fn reconcile_setup(store: &dyn Store, settings: &Settings, setup: Setup) -> Result<Setup, StoreError> {
    match settings.bounded_run {
        Some(_) => Ok(restrict_to_registered(setup, store.registration().await?)),
        None => {
            warn_of_lost_handlers(store, settings, &setup).await?;
            store
                .register(build_registration(&setup, settings), settings.time_source.now())
                .await
                .map(|()| setup)
        }
    }
}

/// What servers of one name have is what the last one of them registered: whoever takes something away from another that
/// runs says so.
async fn warn_of_lost_handlers(
    store: &dyn Store,
    settings: &Settings,
    setup: &Setup,
) -> Result<(), StoreError> {
    let ours: BTreeSet<_> = setup.handlers.iter().map(|spec| &spec.def.name).collect();
    for other in store.nodes().await?.into_iter().filter(|node| !node.gone) {
        let name = other.abilities.registrant.as_deref().filter(|name| *name == settings.registrant);
        let lost = other.abilities.handlers.iter().filter(|handler| !ours.contains(handler));
        let lost: Vec<_> = lost.map(HandlerName::as_str).collect();
        if let Some(name) = name.filter(|_| !lost.is_empty()) {
            tracing::warn!(
                node = other.name,
                handlers = lost.join(", "),
                "a node that is called `{name}` like this one runs handlers that this one does not have: from now on \
                 they get nothing. If its configuration is meant to be another, it needs another `name:`"
            );
        }
    }
    Ok(())
}

/// Tasks that are stopped together.
#[derive(Default)]
struct ServiceGroup {
    stop_token: CancellationToken,
    services: Vec<JoinHandle<()>>,
}

impl ServiceGroup {
    fn start<F>(&mut self, room: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.services.push(tokio::spawn(room(self.stop_token.clone())));
    }

    async fn stop(self) {
        self.stop_token.cancel();
        for mut task in self.services {
            match timeout(SERVICE_STOP_TIMEOUT, &mut task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a room did not end well"),
                Err(_) => {
                    tracing::error!("a room does not end; it is left");
                    task.abort();
                }
            }
        }
    }
}

/// Waits until nothing runs and nothing can begin to.
async fn wait_until_idle(node: &Node) {
    node.slots.wait_until_all_free().await;
    node.running_attempts.wait_until_empty().await;
}

async fn run_journal_filler(node: Arc<Node>, stop: CancellationToken) {
    node.observer.run_filler(stop).await;
}

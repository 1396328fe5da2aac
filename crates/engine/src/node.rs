//! The state that all services of one node share: the store, the active setup, the slots, and the signals between them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use pointsman_core::chain::OrderKey;
use pointsman_core::store::{
    ClaimRequest, Claimant, FinishReceipt, NodeCapabilities, NodeId, Registration, Store, StoreError,
};
use pointsman_core::{ErrorChain, HandlerName, NewEvent, TaskStatus, Tenant, Timestamp};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::attempt_ending::EndedAttempt;
use crate::log_writer::LogWriterHandle;
use crate::metrics::Metrics;
use crate::observer::Observer;
use crate::pull::{LeaseCache, LongPollBroker};
use crate::redrive::RedriveJobs;
use crate::running_attempts::RunningAttempts;
use crate::settings::BoundedRun;
use crate::slots::{ReservedSlots, Slots};
use crate::start_gate::StartGate;
use crate::supervisor::Service;
use crate::task_change::TaskChangeNotifier;
use crate::time::TimeSource;
use crate::wake_signals::WakeSignals;
use crate::{Runner, Settings, Setup};

pub(crate) struct Node {
    /// When this node was started.
    pub(crate) started_at: Timestamp,
    pub(crate) time_source: Arc<TimeSource>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) observer: Observer,
    pub(crate) task_changes: TaskChangeNotifier,
    pub(crate) slots: Slots,
    pub(crate) running_attempts: RunningAttempts,
    pub(crate) start_gate: StartGate,
    pub(crate) log_writer: LogWriterHandle,
    /// The broker at which pull workers wait for tasks.
    pub(crate) pull_broker: LongPollBroker,
    pub(crate) lease_cache: LeaseCache,
    pub(crate) redrive_jobs: RedriveJobs,
    /// Sends ended attempts to the worker.
    pub(crate) ended_attempt_sender: mpsc::UnboundedSender<EndedAttempt>,
    pub(crate) wake_signals: Arc<WakeSignals>,
    /// Requests a check that running attempts still own their tasks.
    pub(crate) attempt_check_requested: Notify,
    /// Wakes the clock service after a rule was lifted.
    pub(crate) rule_lifted: Notify,
    /// Whether ready tasks wait for a slot.
    pub(crate) has_ready_tasks_waiting_for_slot: watch::Sender<bool>,
    active_setup: ArcSwap<ActiveSetup>,
    setup_changed: watch::Sender<()>,
    id: AtomicI64,
    /// Whether this node's capabilities could not be stored last time, so that they must be stored again.
    must_store_capabilities_again: AtomicBool,
}

/// The parts that a node is built from, besides its id in the store and its setup.
pub(crate) struct NodeParts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log_writer: LogWriterHandle,
    pub(crate) pull_broker: LongPollBroker,
    pub(crate) ended_attempt_sender: mpsc::UnboundedSender<EndedAttempt>,
}

impl Node {
    pub(crate) fn new(parts: NodeParts, id: NodeId, setup: Setup) -> Self {
        let wake_signals = Arc::new(WakeSignals::new());
        let bounded_run = parts.settings.bounded_run.as_ref();
        let slots = if parts.settings.enabled_services.worker { parts.settings.slot_count } else { 0 };
        let slots = Slots::new(slots, bounded_run.map(|bounded_run| bounded_run.max_attempts));
        let active_setup = ArcSwap::from_pointee(ActiveSetup::new(setup, bounded_run));
        Self {
            started_at: parts.settings.time_source.now(),
            time_source: parts.settings.time_source.clone(),
            observer: Observer::new(parts.store.clone(), parts.metrics.clone(), wake_signals.clone()),
            store: parts.store,
            settings: parts.settings,
            metrics: parts.metrics,
            task_changes: TaskChangeNotifier::new(),
            slots,
            running_attempts: RunningAttempts::default(),
            start_gate: StartGate::default(),
            log_writer: parts.log_writer,
            pull_broker: parts.pull_broker,
            lease_cache: LeaseCache::default(),
            redrive_jobs: RedriveJobs::default(),
            ended_attempt_sender: parts.ended_attempt_sender,
            wake_signals,
            attempt_check_requested: Notify::new(),
            rule_lifted: Notify::new(),
            has_ready_tasks_waiting_for_slot: watch::Sender::new(false),
            active_setup,
            setup_changed: watch::Sender::new(()),
            id: AtomicI64::new(id),
            must_store_capabilities_again: AtomicBool::new(false),
        }
    }

    /// Creates a service from a function that gets this node and runs until stopped.
    pub(crate) fn service_from_fn<R>(
        self: &Arc<Self>,
        run: impl Fn(Arc<Self>, CancellationToken) -> R + Send + 'static,
    ) -> impl Service
    where
        R: Future<Output = ()> + Send + 'static,
    {
        let node = self.clone();
        move |stop| run(node.clone(), stop)
    }

    /// The id of this node in the store. It changes when the node was declared dead and joins again.
    pub(crate) fn id(&self) -> NodeId {
        self.id.load(Ordering::Acquire)
    }

    pub(crate) fn set_id(&self, id: NodeId) {
        self.id.store(id, Ordering::Release);
    }

    pub(crate) fn active_setup(&self) -> Arc<ActiveSetup> {
        self.active_setup.load_full()
    }

    pub(crate) fn apply_setup(&self, setup: Setup) {
        self.active_setup.store(Arc::new(ActiveSetup::new(setup, self.settings.bounded_run.as_ref())));
        self.setup_changed.send_replace(());
        self.wake_signals.notify_work();
    }

    /// Subscribes to changes of the setup.
    pub(crate) fn subscribe_setup_changes(&self) -> watch::Receiver<()> {
        self.setup_changed.subscribe()
    }

    /// Builds the request of a claim that fills these slots; `None` if there are no slots or no handlers, or while the
    /// node is out of service.
    pub(crate) fn build_claim_request(&self, reserved: &ReservedSlots) -> Option<ClaimRequest> {
        let handlers = self.active_setup.load().runnable_handlers.clone();
        let max = reserved.count();
        (max > 0 && !handlers.is_empty() && self.time_source.is_in_service()).then(|| ClaimRequest {
            claimant: Claimant::Node(self.id()),
            handlers,
            max_tasks: max,
        })
    }

    /// Updates metrics and notifies watchers and readers after the end of an attempt was stored.
    pub(crate) fn report_finished_attempt(
        &self,
        ended: &EndedAttempt,
        finished: &FinishReceipt,
        at: Timestamp,
    ) {
        let EndedAttempt { task_summary: task, finished_attempt } = ended;
        self.metrics.count_task_if_ended(&task.handler, finished.status);
        self.metrics.events_emitted.inc_by(finished.emitted_events.len() as u64);
        // The journal head is advanced first, so that a watcher that is notified of the change finds its events there.
        if let Some(last) = finished.emitted_events.last() {
            self.wake_signals.advance_journal_head(last.id);
        }
        self.task_changes.notify_attempt_finished(task, finished, ended.error(), at);
        self.task_changes.notify_tasks_created(
            &finished_attempt.emitted_events,
            &finished.emitted_events,
            at,
        );
        if !finished_attempt.log_lines.is_empty() {
            self.log_writer.notify_lines_stored();
        }
    }

    /// Notifies watchers of the next step of an order. A step that runs already, or has ended since, was reported by
    /// the node that ran it.
    pub(crate) async fn notify_watchers_of_next_step(
        &self,
        tenant: &Tenant,
        order: &OrderKey,
    ) -> Result<(), StoreError> {
        if !self.task_changes.has_subscribers() {
            return Ok(());
        }
        let waits = |status| matches!(status, TaskStatus::New | TaskStatus::Scheduled);
        let step = self.store.read_order(tenant, order).await?.and_then(|(view, _)| view.task);
        let Some((id, ..)) = step.filter(|(_, status, _)| waits(*status)) else { return Ok(()) };
        // The step may have run between the read of the order and the read of its task.
        let task = self.store.read_task(&id).await?.map(|(task, _)| task);
        if let Some(task) = task.filter(|task| waits(task.lifecycle.state.status())) {
            self.task_changes.notify_task_state(task, self.time_source.now());
        }
        Ok(())
    }

    /// Stores what this node can run, for the node list and for the reasons why tasks wait.
    pub(crate) async fn store_capabilities(&self) -> Result<(), StoreError> {
        let handlers = match self.settings.enabled_services.worker {
            true => BTreeSet::clone(&self.active_setup.load().runnable_handlers),
            false => BTreeSet::new(),
        };
        let registration_name =
            self.settings.bounded_run.is_none().then(|| self.settings.registration_name.clone());
        let (slots, clock) = (self.slots.total(), self.time_source.clock_report());
        self.store
            .store_node_capabilities(
                self.id(),
                NodeCapabilities { registration_name, handlers, slots, clock },
            )
            .await
    }

    /// Stores the capabilities of this node; if the store fails, the next sweep stores them again.
    pub(crate) async fn store_capabilities_or_retry_later(&self) {
        let stored = self.store_capabilities().await;
        self.must_store_capabilities_again.store(stored.is_err(), Ordering::Release);
        if let Err(error) = stored {
            self.count_store_error();
            tracing::debug!(
                error = %ErrorChain(&error),
                "could not store what this node can run; the node list and the reasons why tasks wait are out of date \
                 until the next sweep retries"
            );
        }
    }

    pub(crate) fn has_stored_capabilities(&self) -> bool {
        !self.must_store_capabilities_again.load(Ordering::Acquire)
    }

    /// Counts a failed store call. The store itself logs its outages, once for all callers.
    pub(crate) fn count_store_error(&self) {
        self.metrics.store_errors.inc();
    }
}

/// The setup that is in effect, with indexes for lookups.
pub(crate) struct ActiveSetup {
    pub(crate) setup: Arc<Setup>,
    /// The handlers whose tasks this node claims.
    runnable_handlers: Arc<BTreeSet<HandlerName>>,
    runners: HashMap<HandlerName, RunnerWithTimeout>,
}

/// How a handler is run on this node.
pub(crate) struct RunnerWithTimeout {
    pub(crate) runner: Arc<dyn Runner>,
    pub(crate) timeout: Duration,
}

impl ActiveSetup {
    fn new(setup: Setup, bounded_run: Option<&BoundedRun>) -> Self {
        let non_pull_handlers = setup.handlers.iter().filter(|spec| !spec.def.pull);
        let runners = non_pull_handlers.filter_map(|spec| {
            let runner = spec.runner.clone()?;
            Some((spec.def.name.clone(), RunnerWithTimeout { runner, timeout: spec.attempt_timeout }))
        });
        let runners: HashMap<_, _> = runners.collect();
        let is_included =
            |name: &&HandlerName| bounded_run.is_none_or(|bounded_run| bounded_run.includes_handler(name));
        let runnable_handlers = Arc::new(runners.keys().filter(is_included).cloned().collect());
        Self { runnable_handlers, runners, setup: Arc::new(setup) }
    }

    /// Finds the runner of a handler; `None` if this node does not run the handler.
    pub(crate) fn find_runner(&self, handler: &HandlerName) -> Option<&RunnerWithTimeout> {
        self.runners.get(handler)
    }

    /// Estimates how many tasks of this node will be ready at once when these events are journaled, at most `max`. Of
    /// many events only a sample is examined, because the number is only used to reserve slots.
    pub(crate) fn estimate_tasks_ready_on_emit<'a>(
        &self,
        events: impl Iterator<Item = &'a NewEvent> + Clone,
        max: usize,
        now: Timestamp,
    ) -> usize {
        const MAX_SAMPLED_EVENTS: usize = 64;
        let sample_step = events.clone().count().div_ceil(MAX_SAMPLED_EVENTS).max(1);
        let due_now = events.step_by(sample_step).filter(|event| event.due.is_none_or(|due| due <= now));
        let bindings =
            due_now.flat_map(|event| self.setup.routes.find_handlers_of_event_type(&event.event_type));
        let tasks = bindings.filter(|binding| self.runnable_handlers.contains(&binding.handler)).count();
        tasks.saturating_mul(sample_step).min(max)
    }
}

/// Builds the registration of a setup in the store.
pub(crate) fn build_registration(setup: &Setup, settings: &Settings) -> Registration {
    let handlers = setup.handlers.iter().map(|spec| spec.def.clone()).collect();
    Registration {
        registration_name: settings.registration_name.clone(),
        handlers,
        routes: setup.routes.clone(),
        tenant_weights: setup.tenant_weights.clone(),
        chains: setup.chains.clone(),
        chain_routes: setup.chain_routes.clone(),
        configured_object_digests: setup.file_digests.clone(),
    }
}

//! The context of an attempt: its event and task, and the effects that commit with its end.
//!
//! Events and log lines that a handler adds through its context are buffered in memory, and committed with the end
//! of the attempt, all or nothing. If the attempt fails, its events are dropped; if its node dies or the attempt times
//! out, its log lines are dropped too.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::store::{AttemptResult, ClaimedTask};
use pointsman_core::task::{LogLevel, LogLine};
use pointsman_core::{Context, EventId, HandlerName, Json, NewEvent, TaskId, Timestamp};
use pointsman_engine::{Delivery, HandlerOutcome};

use crate::attempt_scope::AttemptScope;
use crate::emit::{EmitOptions, InvalidEvent};
use crate::event::to_new_event;
use crate::shared_state::StateMap;
use crate::{Bus, Event, Extract, HandlerError, RawEvent};

/// The context of an attempt. Cheap to clone; it accepts nothing after the attempt has ended.
#[derive(Clone)]
pub struct Ctx(Arc<CtxInner>);

struct CtxInner {
    delivery: Delivery,
    event: Arc<pointsman_core::Event>,
    bus: Bus,
    attempt_scope: AttemptScope,
    /// `None` once the attempt has ended.
    effects: Mutex<Option<AttemptEffects>>,
}

/// Events and log lines that commit with the end of the attempt.
#[derive(Default)]
struct AttemptEffects {
    emitted_events: Vec<NewEvent>,
    log_lines: Vec<LogLine>,
}

/// The task of an attempt, and the number of the attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskInfo {
    /// The task's id.
    pub id: TaskId,
    /// The handler that runs.
    pub handler: HandlerName,
    /// The event of the task; `None` for a step of an order.
    pub event_id: Option<EventId>,
    /// The preceding event of the object.
    pub prev: Option<EventId>,
    /// The preceding event of the object that was delivered to this handler.
    pub prev_sent: Option<EventId>,
    /// The number of the attempt; 1 for the first one.
    pub attempt: u32,
    /// The number of retries so far.
    pub retries: u32,
    /// The fence of the attempt, larger than that of every earlier attempt: a system that the handler writes to can
    /// reject a smaller one.
    pub fence: i64,
    /// Whether the task runs outside the order of its lane.
    pub is_out_of_order: bool,
}

/// Why a context rejected an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CtxError {
    /// The event cannot be emitted.
    #[error(transparent)]
    InvalidEvent(#[from] InvalidEvent),
    /// The effects of the attempt are already committed or dropped.
    #[error("the attempt has ended")]
    AttemptEnded,
}

impl Ctx {
    pub(crate) fn new(
        delivery: Delivery,
        event: Arc<pointsman_core::Event>,
        bus: Bus,
        scope: AttemptScope,
    ) -> Self {
        let effects = Mutex::new(Some(AttemptEffects::default()));
        Self(Arc::new(CtxInner { delivery, event, bus, attempt_scope: scope, effects }))
    }

    /// The event as it is in the journal. A step of an order has none: it gets a substitute with the order's path as
    /// its key, the order's value, and no id.
    pub fn event(&self) -> RawEvent {
        RawEvent(self.0.event.clone())
    }

    pub(crate) fn claimed_task(&self) -> &ClaimedTask {
        &self.0.delivery.task
    }

    /// The task of this attempt.
    pub fn task_info(&self) -> TaskInfo {
        let CtxInner { delivery: Delivery { task, .. }, event, .. } = &*self.0;
        TaskInfo {
            id: task.id.clone(),
            handler: task.handler.clone(),
            event_id: task.subject.event().map(|event| event.id),
            prev: event.prev,
            prev_sent: task.prev_sent_event_id,
            attempt: task.attempt,
            retries: task.retries,
            fence: task.fence,
            is_out_of_order: task.out_of_order,
        }
    }

    /// The number of the attempt; 1 for the first one.
    pub fn attempt(&self) -> u32 {
        self.0.delivery.task.attempt
    }

    /// The fence, larger than that of every earlier attempt: systems that the handler writes to can reject lower ones.
    pub fn fence(&self) -> i64 {
        self.0.delivery.task.fence
    }

    /// The preceding event of the object.
    pub fn prev(&self) -> Option<EventId> {
        self.0.event.prev
    }

    /// The preceding event of the object that was delivered to this handler.
    pub fn prev_sent(&self) -> Option<EventId> {
        self.0.delivery.task.prev_sent_event_id
    }

    /// Whether the task runs outside the order of its lane.
    pub fn is_out_of_order(&self) -> bool {
        self.0.delivery.task.out_of_order
    }

    /// Emits an event when the attempt ends, if it succeeds or snoozes.
    pub fn emit<E: Event>(&self, event: E) -> Result<(), CtxError> {
        self.emit_with(event, EmitOptions::new())
    }

    /// Like [`emit`](Self::emit), with options. Unless they set a context or a tenant, the event keeps the tenant, the
    /// request id and the trace of the handled event.
    pub fn emit_with<E: Event>(&self, event: E, options: EmitOptions) -> Result<(), CtxError> {
        options.reject_idempotency_key(E::TYPE)?;
        let handled_event = &self.0.event;
        let options = EmitOptions {
            context: options.context.or_else(|| Some(copy_trace_entries(&handled_event.context))),
            tenant: options.tenant.or_else(|| Some(handled_event.tenant.to_string())),
            ..options
        };
        // The worker sets the cause, and fails the attempt for good if it belongs to an event storm.
        let event = to_new_event(&event, &options, None, self.now())?;
        self.with_effects(|effects| effects.emitted_events.push(event))
    }

    /// Adds a line to the task's log when the attempt ends. Lines logged through `tracing` appear at once.
    pub fn log(&self, message: impl Into<String>) {
        self.add_log_line(LogLevel::Info, message.into());
    }

    /// Like [`log`](Self::log), at the level `error`.
    pub fn log_error(&self, message: impl Into<String>) {
        self.add_log_line(LogLevel::Error, message.into());
    }

    fn add_log_line(&self, level: LogLevel, message: String) {
        let line = LogLine { time: self.now(), level, message };
        // A line that is logged after the end of the attempt is dropped.
        let _ = self.with_effects(|effects| effects.log_lines.push(line));
    }

    /// Returns when the attempt must stop: it timed out, its task was cancelled, or the node stops. The handler's
    /// future is dropped a moment later in any case.
    pub async fn cancelled(&self) {
        self.0.delivery.cancel_token.cancelled().await;
    }

    /// Runs a future as a part of this attempt, for work that a handler spawns: its `tracing` events reach the task's
    /// log, and the events it emits through the bus name their cause.
    pub fn run_in_attempt<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        self.0.attempt_scope.clone().run_in_attempt(work)
    }

    pub(crate) fn states(&self) -> &StateMap {
        self.0.bus.states()
    }

    fn now(&self) -> Timestamp {
        self.0.delivery.log_sink.now()
    }

    fn with_effects(&self, add: impl FnOnce(&mut AttemptEffects)) -> Result<(), CtxError> {
        let mut effects = self.0.effects.lock().unwrap_or_else(PoisonError::into_inner);
        effects.as_mut().map(add).ok_or(CtxError::AttemptEnded)
    }

    /// Ends the attempt: returns its outcome with the effects that commit with it. Later effects are rejected.
    pub(crate) fn finish_attempt(&self, returned: Result<Option<Json>, HandlerError>) -> HandlerOutcome {
        let effects = self.0.effects.lock().unwrap_or_else(PoisonError::into_inner).take();
        let AttemptEffects { emitted_events, log_lines } = effects.unwrap_or_default();
        let result = match returned {
            Ok(result) => AttemptResult::Succeeded { result },
            Err(error) => error.into_attempt_result(self.now()),
        };
        HandlerOutcome { result, target_health: None, emitted_events, log_lines }
    }
}

/// Copies the context entries that identify the request and the trace of the handled event, for the events that its
/// handler emits.
fn copy_trace_entries(context: &Context) -> Context {
    let is_trace_entry = |name: &str| matches!(name, "request_id" | "traceparent" | "tracestate");
    context
        .iter()
        .filter(|(name, _)| is_trace_entry(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ctx").field(&self.task_info()).finish()
    }
}

impl Extract for Ctx {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        Ok(ctx.clone())
    }
}

/// The bus itself: for a unit of work of the handler's own, or an emit that does not wait for the end of the
/// attempt. Both take effect even if the attempt then fails, and again when it is retried.
impl Extract for Bus {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        Ok(ctx.0.bus.clone())
    }
}

impl Extract for TaskInfo {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        Ok(ctx.task_info())
    }
}

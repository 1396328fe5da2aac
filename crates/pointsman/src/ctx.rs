//! The context of an attempt: what it is about, and what it leaves behind.
//!
//! What a handler emits and logs through its context lies in memory while it works, and is committed with the
//! end of the attempt, all or nothing. If the attempt fails, nothing was emitted; if its node dies or its time
//! runs out, it was as if it had never said a word.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::store::{Claimed, Ended};
use pointsman_core::task::{Level, LogLine};
use pointsman_core::{Context, EventId, HandlerName, Json, NewEvent, TaskId, Timestamp};
use pointsman_engine::{Delivery, Outcome};

use crate::emit::{BadEvent, Emit};
use crate::event::describe;
use crate::scope::Scope;
use crate::state::States;
use crate::{Bus, Event, Extract, HandlerError, Raw};

/// The context of an attempt. Cheap to clone; after the attempt has ended it takes nothing any more.
#[derive(Clone)]
pub struct Ctx(Arc<Inner>);

struct Inner {
    delivery: Delivery,
    event: Arc<pointsman_core::Event>,
    bus: Bus,
    scope: Scope,
    /// `None` once the attempt has ended.
    effects: Mutex<Option<Effects>>,
}

#[derive(Default)]
struct Effects {
    emits: Vec<NewEvent>,
    logs: Vec<LogLine>,
}

/// What a task is, and which run of it this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    pub id: TaskId,
    pub handler: HandlerName,
    /// None for a step of an order.
    pub event: Option<EventId>,
    /// The preceding event of the object.
    pub prev: Option<EventId>,
    /// The preceding event of the object that this handler was sent.
    pub prev_sent: Option<EventId>,
    /// 1 for the first run.
    pub attempt: u32,
    /// How many failures it has been forgiven.
    pub retries: u32,
    /// Larger than that of every earlier attempt: whoever is written to can refuse a smaller one.
    pub fence: i64,
    /// It runs outside the order of its object.
    pub late: bool,
}

/// Why a context took no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CtxError {
    #[error(transparent)]
    Event(#[from] BadEvent),
    /// Its effects are committed, or given up.
    #[error("the attempt has ended")]
    AttemptEnded,
}

impl Ctx {
    pub(crate) fn new(delivery: Delivery, event: Arc<pointsman_core::Event>, bus: Bus, scope: Scope) -> Self {
        let effects = Mutex::new(Some(Effects::default()));
        Self(Arc::new(Inner { delivery, event, bus, scope, effects }))
    }

    /// The event as the journal holds it. A step of an order is about none; what stands for it here has the order's
    /// name as its key, the order's value, and no id.
    pub fn event(&self) -> Raw {
        Raw(self.0.event.clone())
    }

    pub(crate) fn claimed(&self) -> &Claimed {
        &self.0.delivery.task
    }

    pub fn task(&self) -> TaskInfo {
        let Inner { delivery: Delivery { task, .. }, event, .. } = &*self.0;
        TaskInfo {
            id: task.id.clone(),
            handler: task.handler.clone(),
            event: task.subject.event().map(|event| event.id),
            prev: event.prev,
            prev_sent: task.prev_sent,
            attempt: task.attempt,
            retries: task.retries,
            fence: task.fence,
            late: task.late,
        }
    }

    /// 1 for the first run.
    pub fn attempt(&self) -> u32 {
        self.0.delivery.task.attempt
    }

    /// Larger than that of every earlier attempt: whoever is written to can refuse a smaller one.
    pub fn fence(&self) -> i64 {
        self.0.delivery.task.fence
    }

    /// The preceding event of the object.
    pub fn prev(&self) -> Option<EventId> {
        self.0.event.prev
    }

    /// The preceding event of the object that this handler was sent.
    pub fn prev_sent(&self) -> Option<EventId> {
        self.0.delivery.task.prev_sent
    }

    /// Whether it runs outside the order of its object.
    pub fn late(&self) -> bool {
        self.0.delivery.task.late
    }

    /// Emits an event with the end of the attempt, if that succeeds or snoozes.
    pub fn emit<E: Event>(&self, event: E) -> Result<(), CtxError> {
        self.emit_with(event, Emit::new())
    }

    /// The same, with more to say. Unless a context or a tenant is given, the event keeps the tenant, the
    /// request id and the trace of the one it comes from.
    pub fn emit_with<E: Event>(&self, event: E, how: Emit) -> Result<(), CtxError> {
        how.without_idempotency(E::TYPE)?;
        let origin = &self.0.event;
        let how = Emit {
            context: how.context.or_else(|| Some(trace_of(&origin.context))),
            tenant: how.tenant.or_else(|| Some(origin.tenant.to_string())),
            ..how
        };
        // The worker fills in the cause, and fails the attempt for good if it is one of a storm.
        let event = describe(&event, &how, None, self.now())?;
        self.effects(|effects| effects.emits.push(event))
    }

    /// Adds a line to the task's log, with the end of the attempt. Lines logged through `tracing` show at once.
    pub fn log(&self, message: impl Into<String>) {
        self.line(Level::Info, message.into());
    }

    /// The same for what went wrong.
    pub fn log_error(&self, message: impl Into<String>) {
        self.line(Level::Error, message.into());
    }

    fn line(&self, level: Level, message: String) {
        let line = LogLine { time: self.now(), level, message };
        // A line after the end has no attempt to belong to, and is no reason to fail whoever wrote it.
        let _ = self.effects(|effects| effects.logs.push(line));
    }

    /// Returns when the attempt is to stop: its time is up, its task was cancelled, or the node goes. The
    /// handler is dropped a moment later in any case.
    pub async fn cancelled(&self) {
        self.0.delivery.cancel.cancelled().await;
    }

    /// Runs a future as a part of this attempt: for work that a handler spawns. What it logs through `tracing`
    /// reaches the task's log, and what it emits through the bus names its cause.
    pub fn scope<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        self.0.scope.clone().run(work)
    }

    pub(crate) fn states(&self) -> &States {
        self.0.bus.states()
    }

    fn now(&self) -> Timestamp {
        self.0.delivery.log.now()
    }

    fn effects(&self, add: impl FnOnce(&mut Effects)) -> Result<(), CtxError> {
        let mut effects = self.0.effects.lock().unwrap_or_else(PoisonError::into_inner);
        effects.as_mut().map(add).ok_or(CtxError::AttemptEnded)
    }

    /// The end of the attempt, with all that commits with it.
    pub(crate) fn end(&self, answer: Result<Option<Json>, HandlerError>) -> Outcome {
        let effects = self.0.effects.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Effects { emits, logs } = effects.unwrap_or_default();
        let ended = match answer {
            Ok(result) => Ended::Succeeded { result },
            Err(error) => error.into_ended(self.now()),
        };
        Outcome { ended, target: None, emits, logs }
    }
}

/// What joins the events of one request.
fn trace_of(context: &Context) -> Context {
    let joins = |name: &str| matches!(name, "request_id" | "traceparent" | "tracestate");
    context
        .iter()
        .filter(|(name, _)| joins(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ctx").field(&self.task()).finish()
    }
}

impl Extract for Ctx {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        Ok(ctx.clone())
    }
}

/// The bus itself: for a unit of work of the handler's own, or an emit that does not wait for the end of the
/// attempt. Either is done even if the attempt then fails, and done again when it is tried again.
impl Extract for Bus {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        Ok(ctx.0.bus.clone())
    }
}

impl Extract for TaskInfo {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        Ok(ctx.task())
    }
}

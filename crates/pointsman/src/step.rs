//! Steps of orders as handler arguments.

use std::sync::Arc;

use pointsman_core::chain::{ChainNodeId, OrderKey};
use pointsman_core::store::ClaimedTask;
use pointsman_core::task::{StepRun, TaskSubject};
use pointsman_core::{Context, Event, EventId, EventType};
use serde::de::DeserializeOwned;

use crate::{Ctx, Extract, HandlerError};

/// The type of the substitute event of a step.
const STEP_EVENT_TYPE: &str = "pointsman.step";

/// A step of an order: the order, its node and its value. The value that the handler returns becomes the order's value;
/// `()` leaves it unchanged.
///
/// ```
/// use pointsman::{HandlerError, Step};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Article {
///     title: String,
///     checked: bool,
/// }
///
/// async fn check(step: Step<Article>) -> Result<Article, HandlerError> {
///     Ok(Article { checked: true, ..step.value })
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<T> {
    /// The order.
    pub order: OrderKey,
    /// The node of the step.
    pub node: ChainNodeId,
    /// The order's value before the step.
    pub value: T,
}

/// Extracts the step. If its value cannot be parsed, the task fails for good, because a retry would not help.
impl<T: DeserializeOwned + Send> Extract for Step<T> {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        let step = match &ctx.claimed_task().subject {
            TaskSubject::Step(step) => step,
            TaskSubject::Event(_) | TaskSubject::CollectionRun(_) => {
                return Err(HandlerError::permanent(
                    "the task is not a step of an order; take the event's type or `RawEvent` instead of `Step`",
                ));
            }
        };
        let value = step.value.decode().map_err(|error| {
            HandlerError::permanent(format!(
                "the value of the order {} does not fit the type of the step: {error}",
                step.order_key
            ))
        })?;
        Ok(Self { order: step.order_key.clone(), node: step.node.clone(), value })
    }
}

/// The event of a task. A step has no event: it gets a substitute that is not in the journal, so that a handler can
/// handle events and steps. `None` for a run of a source, which no function of a program handles.
pub(crate) fn event_or_substitute_for_task(task: &ClaimedTask) -> Option<Arc<Event>> {
    match &task.subject {
        TaskSubject::Event(event) => Some(event.clone()),
        TaskSubject::Step(step) => Some(Arc::new(substitute_event_for_step(step))),
        TaskSubject::CollectionRun(_) => None,
    }
}

fn substitute_event_for_step(step: &StepRun) -> Event {
    Event {
        id: EventId::ZERO,
        prev: None,
        event_type: EventType::new(STEP_EVENT_TYPE)
            .unwrap_or_else(|_| unreachable!("the constant is a valid type")),
        key: Some(step.object_key.clone()),
        sub_object: None,
        value: step.value.clone(),
        context: Context::new(),
        tenant: step.tenant.clone(),
        cause: None,
    }
}

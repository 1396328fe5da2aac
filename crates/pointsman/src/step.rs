//! Steps: handlers that an order comes to on its way along a chain.

use std::sync::Arc;

use pointsman_core::chain::{NodeId, OrderKey};
use pointsman_core::store::Claimed;
use pointsman_core::task::{StepRun, Subject};
use pointsman_core::{Context, Event, EventId, HandlingKey};
use serde::de::DeserializeOwned;

use crate::{Ctx, Extract, HandlerError};

/// The type of what stands for an event where there is none.
const STEP: &str = "pointsman.step";

/// An order at the node whose step is to be done, with its value. What the handler returns takes the value's place;
/// one that returns `()` leaves it as it is.
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
    pub order: OrderKey,
    pub node: NodeId,
    pub value: T,
}

/// A value that does not fit will fit no better next time.
impl<T: DeserializeOwned + Send> Extract for Step<T> {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        let step = match &ctx.claimed().subject {
            Subject::Step(step) => step,
            Subject::Event(_) | Subject::Run(_) => {
                return Err(HandlerError::permanent("this is no step of an order"));
            }
        };
        let value = step.value.to().map_err(|fault| {
            HandlerError::permanent(format!("the value of the order {} does not fit: {fault}", step.order))
        })?;
        Ok(Self { order: step.order.clone(), node: step.node.clone(), value })
    }
}

/// The event that a task is about. A step is about none: one stands for it that no journal holds, so that a handler can
/// serve both. `None`: functions of a program are no sources.
pub(crate) fn event_of(task: &Claimed) -> Option<Arc<Event>> {
    match &task.subject {
        Subject::Event(event) => Some(event.clone()),
        Subject::Step(step) => Some(Arc::new(stand_in(step))),
        Subject::Run(_) => None,
    }
}

fn stand_in(step: &StepRun) -> Event {
    Event {
        id: EventId::ZERO,
        prev: None,
        kind: HandlingKey::new(STEP).unwrap_or_else(|_| unreachable!("it is a well-formed type")),
        key: Some(step.key.clone()),
        sub: None,
        value: step.value.clone(),
        context: Context::new(),
        tenant: step.tenant.clone(),
        cause: None,
    }
}

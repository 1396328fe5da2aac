//! Handlers: async functions whose arguments are extracted from the attempt.
//!
//! An argument is the event in its own type, the [`RawEvent`], the [`Step`](crate::Step) of an order, the [`Ctx`], a
//! [`State`](crate::State), the [`RequestContext`](crate::RequestContext), the [`TaskInfo`](crate::TaskInfo), or a type
//! of the program's own that implements [`Extract`].

use std::any::type_name;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{Either, select};
use pointsman_core::Json;
use pointsman_engine::{Delivery, HandlerOutcome};

use crate::attempt_scope::AttemptScope;
use crate::handler_result::IntoHandlerResult;
use crate::shared_state::{BusResources, MissingState, StateMap};
use crate::step::event_or_substitute_for_task;
use crate::task_log::LogLineSender;
use crate::{Ctx, Event, HandlerError, RawEvent};

/// An argument of a handler.
///
/// ```
/// use pointsman::{Ctx, Extract, HandlerError};
///
/// /// The user who caused the event, as the web server wrote it into the event's context.
/// struct Actor(String);
///
/// impl Extract for Actor {
///     fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
///         let actor = ctx.event().context.get("actor").cloned();
///         actor.map(Actor).ok_or_else(|| HandlerError::permanent("the event names no actor"))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    note = "an argument is an event, or implements `pointsman::Extract`"
)]
pub trait Extract: Sized + Send {
    /// Extracts the argument from an attempt. An error ends the attempt as if the handler had returned it.
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError>;

    /// Checks that the states that the argument needs were given to the bus. Called once, when the bus starts.
    fn check_states(states: &StateMap) -> Result<(), MissingState> {
        let _ = states;
        Ok(())
    }
}

/// The event in its own type. If the payload cannot be parsed, the task fails for good, because a retry would not help.
impl<E: Event> Extract for E {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        let event = ctx.event();
        event.parse_value().map_err(|error| {
            HandlerError::permanent(format!(
                "the value of {} does not fit {}: {error}",
                event.event_type,
                type_name::<E>()
            ))
        })
    }
}

impl Extract for RawEvent {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        Ok(ctx.event())
    }
}

/// An async function that can handle events. Implemented for functions and closures of up to eight arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is an `async fn` of up to eight arguments, each an event or something that implements \
            `Extract`, which returns `()`, `Snooze` or a `Result`"
)]
pub trait Handler<Args>: Clone + Send + Sync + 'static {
    /// Runs the handler with arguments extracted from the attempt.
    fn run(&self, ctx: &Ctx) -> impl Future<Output = Result<Option<Json>, HandlerError>> + Send;

    /// Checks that the states that the arguments need were given to the bus.
    fn check_states(states: &StateMap) -> Result<(), MissingState>;
}

macro_rules! impl_handler_for_functions {
    ($($argument:ident)*) => {
        impl<F, Work, $($argument),*> Handler<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Work + Clone + Send + Sync + 'static,
            Work: Future<Output: IntoHandlerResult> + Send,
            $($argument: Extract,)*
        {
            #[allow(unused_variables)]
            async fn run(&self, ctx: &Ctx) -> Result<Option<Json>, HandlerError> {
                self($($argument::extract(ctx)?),*).await.into_handler_result()
            }

            #[allow(unused_variables)]
            fn check_states(states: &StateMap) -> Result<(), MissingState> {
                $($argument::check_states(states)?;)*
                Ok(())
            }
        }
    };
}
impl_handler_for_functions!();
impl_handler_for_functions!(A);
impl_handler_for_functions!(A B);
impl_handler_for_functions!(A B C);
impl_handler_for_functions!(A B C D);
impl_handler_for_functions!(A B C D E);
impl_handler_for_functions!(A B C D E G);
impl_handler_for_functions!(A B C D E G H);
impl_handler_for_functions!(A B C D E G H I);

/// Runs one attempt. Log lines are sent to the store while the handler runs, and all of them are sent when this
/// returns, even if the handler panicked.
pub(crate) async fn run_attempt<Args, H: Handler<Args>>(
    handler: H,
    delivery: Delivery,
    resources: Arc<BusResources>,
) -> HandlerOutcome {
    // The engine delivers only events and steps to functions.
    let Some(event) = event_or_substitute_for_task(&delivery.task) else {
        return HandlerOutcome::failed("there is no event to handle");
    };
    let (line_sender, line_receiver) = LogLineSender::new(delivery.log_sink.time_source().clone());
    let log_sink = delivery.log_sink.clone();
    let scope = AttemptScope::new(&delivery.task, line_sender.clone());
    let ctx = Ctx::new(delivery, event, resources.wait_for_bus().await, scope.clone());
    let handler_run = pin!(AssertUnwindSafe(scope.run_in_attempt(handler.run(&ctx))).catch_unwind());
    let log_forwarding = pin!(line_receiver.forward_to(log_sink));
    let returned = match select(handler_run, log_forwarding).await {
        Either::Left((returned, log_forwarding)) => {
            line_sender.close();
            log_forwarding.await;
            returned
        }
        Either::Right(((), handler_run)) => handler_run.await,
    };
    ctx.finish_attempt(returned.unwrap_or_else(|panic| Err(HandlerError::new(panic_error_text(&*panic)))))
}

/// The message of a panic, for an error.
pub(crate) fn panic_error_text(panic: &(dyn std::any::Any + Send)) -> String {
    let message =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", message.unwrap_or("no message"))
}

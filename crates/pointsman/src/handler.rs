//! Handlers: plain async functions whose arguments say what they need.
//!
//! An argument is anything that can be taken from the attempt: the event in its own type, the [`Raw`] event,
//! the [`Step`](crate::Step) of an order, the [`Ctx`], a [`State`](crate::State), the [`RequestContext`](crate::RequestContext), the
//! [`TaskInfo`](crate::TaskInfo), or a type of the program's own that implements [`Extract`].

use std::any::type_name;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{Either, select};
use pointsman_core::Json;
use pointsman_engine::{Delivery, Outcome};

use crate::answer::Answer;
use crate::scope::Scope;
use crate::state::{MissingState, Shared, States};
use crate::step::event_of;
use crate::task_log::Lines;
use crate::{Ctx, Event, HandlerError, Raw};

/// An argument of a handler.
///
/// ```
/// use pointsman::{Ctx, Extract, HandlerError};
///
/// /// Who did it, as the web server put it into the event's context.
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
    /// Takes the argument from an attempt. An error ends the attempt as if the handler had returned it.
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError>;

    /// Whether the states it needs were given. Asked once, when the bus starts.
    fn check(states: &States) -> Result<(), MissingState> {
        let _ = states;
        Ok(())
    }
}

/// The event in its own type. A payload that does not fit will fit no better next time.
impl<E: Event> Extract for E {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        let event = ctx.event();
        event.to().map_err(|fault| {
            HandlerError::permanent(format!(
                "the value of {} does not fit {}: {fault}",
                event.kind,
                type_name::<E>()
            ))
        })
    }
}

impl Extract for Raw {
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
    fn run(&self, ctx: &Ctx) -> impl Future<Output = Result<Option<Json>, HandlerError>> + Send;

    /// Whether the states it needs were given.
    fn check(states: &States) -> Result<(), MissingState>;
}

macro_rules! functions_of {
    ($($argument:ident)*) => {
        impl<F, Work, $($argument),*> Handler<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Work + Clone + Send + Sync + 'static,
            Work: Future<Output: Answer> + Send,
            $($argument: Extract,)*
        {
            #[allow(unused_variables)]
            async fn run(&self, ctx: &Ctx) -> Result<Option<Json>, HandlerError> {
                self($($argument::extract(ctx)?),*).await.into_result()
            }

            #[allow(unused_variables)]
            fn check(states: &States) -> Result<(), MissingState> {
                $($argument::check(states)?;)*
                Ok(())
            }
        }
    };
}
functions_of!();
functions_of!(A);
functions_of!(A B);
functions_of!(A B C);
functions_of!(A B C D);
functions_of!(A B C D E);
functions_of!(A B C D E G);
functions_of!(A B C D E G H);
functions_of!(A B C D E G H I);

/// Runs one attempt. Lines flow to the store while the handler works, and all of them have left when this
/// returns, also when the handler panicked: then they matter most.
pub(crate) async fn attempt<Args, H: Handler<Args>>(
    handler: H,
    delivery: Delivery,
    shared: Arc<Shared>,
) -> Outcome {
    // The engine gives functions nothing but events and steps.
    let Some(event) = event_of(&delivery.task) else {
        return Outcome::failed("there is no event to handle");
    };
    let (lines, queue) = Lines::new(delivery.log.time().clone());
    let sink = delivery.log.clone();
    let scope = Scope::new(&delivery.task, lines.clone());
    let ctx = Ctx::new(delivery, event, shared.bus().await, scope.clone());
    let work = pin!(AssertUnwindSafe(scope.run(handler.run(&ctx))).catch_unwind());
    let pump = pin!(queue.pump(sink));
    let answer = match select(work, pump).await {
        Either::Left((answer, pump)) => {
            lines.close();
            pump.await;
            answer
        }
        Either::Right(((), work)) => work.await,
    };
    ctx.end(answer.unwrap_or_else(|panic| Err(HandlerError::new(panicked(&*panic)))))
}

/// What a panic said.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let said =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", said.unwrap_or("no message"))
}

//! What handlers share: connections, clients, configuration.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;

use tokio::sync::watch;

use crate::{Bus, Ctx, Extract, HandlerError};

/// A value that was given to [`Builder::state`](crate::Builder::state), cloned for each attempt. Whether it was
/// given is checked when the bus starts, not when the first event comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct State<T>(pub T);

/// One value of each type.
#[derive(Default)]
pub struct States(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl States {
    pub(crate) fn put<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// The value of this type.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Result<T, MissingState> {
        let found = self.0.get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref::<T>());
        found.cloned().ok_or(MissingState(type_name::<T>()))
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "States({})", self.0.len())
    }
}

/// What all attempts of a bus share.
pub(crate) struct Shared {
    pub(crate) states: States,
    /// Empty while the bus starts, although attempts may already run; and again after it has stopped, so that
    /// the bus and its handlers do not keep each other alive.
    bus: watch::Sender<Option<Bus>>,
}

impl Shared {
    pub(crate) fn new(states: States) -> Self {
        Self { states, bus: watch::Sender::new(None) }
    }

    pub(crate) fn started(&self, bus: Bus) {
        self.bus.send_replace(Some(bus));
    }

    pub(crate) fn stopped(&self) {
        self.bus.send_replace(None);
    }

    /// The bus, as soon as it has started.
    pub(crate) async fn bus(&self) -> Bus {
        let mut started = self.bus.subscribe();
        loop {
            if let Some(bus) = started.borrow_and_update().clone() {
                return bus;
            }
            // The sender is our own, and lives as long as we do.
            let _ = started.changed().await;
        }
    }
}

/// A handler asks for a state that nobody gave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no state of type {0} was given to the bus")]
pub struct MissingState(&'static str);

impl<T: Clone + Send + Sync + 'static> Extract for State<T> {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        Ok(Self(ctx.states().get()?))
    }

    fn check(states: &States) -> Result<(), MissingState> {
        states.get::<T>().map(|_| ())
    }
}

//! Values that handlers share: connections, clients, configuration.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;

use tokio::sync::watch;

use crate::{Bus, Ctx, Extract, HandlerError};

/// A value that was given to [`BusBuilder::state`](crate::BusBuilder::state), cloned for each attempt. The bus checks
/// at its start that the value was given.
#[derive(Clone, Copy, Debug, Default)]
pub struct State<T>(pub T);

/// The shared values, one of each type.
#[derive(Default)]
pub struct StateMap(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl StateMap {
    pub(crate) fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// Returns a clone of the value of this type.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Result<T, MissingState> {
        let found = self.0.get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref::<T>());
        found.cloned().ok_or(MissingState(type_name::<T>()))
    }
}

impl fmt::Debug for StateMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateMap({})", self.0.len())
    }
}

/// The states and the bus, which all attempts share.
pub(crate) struct BusResources {
    pub(crate) states: StateMap,
    /// `None` while the bus starts, although attempts may already run; and again after the bus has stopped, so that
    /// the bus and its handlers do not keep each other alive.
    bus: watch::Sender<Option<Bus>>,
}

impl BusResources {
    pub(crate) fn new(states: StateMap) -> Self {
        Self { states, bus: watch::Sender::new(None) }
    }

    pub(crate) fn set_bus(&self, bus: Bus) {
        self.bus.send_replace(Some(bus));
    }

    pub(crate) fn clear_bus(&self) {
        self.bus.send_replace(None);
    }

    /// Waits until the bus has started, and returns it.
    pub(crate) async fn wait_for_bus(&self) -> Bus {
        let mut receiver = self.bus.subscribe();
        loop {
            if let Some(bus) = receiver.borrow_and_update().clone() {
                return bus;
            }
            // This fails only if the sender is dropped, and `self` owns the sender.
            let _ = receiver.changed().await;
        }
    }
}

/// The error of a handler that takes a state which was not given to the bus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no state of type {0} was given to the bus; add it with `state`")]
pub struct MissingState(&'static str);

impl<T: Clone + Send + Sync + 'static> Extract for State<T> {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        Ok(Self(ctx.states().get()?))
    }

    fn check_states(states: &StateMap) -> Result<(), MissingState> {
        states.get::<T>().map(|_| ())
    }
}

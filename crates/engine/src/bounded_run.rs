//! Runs that end by themselves, beside whoever runs for good.
//!
//! A bounded run is a guest: it takes the handlers and routes as the store has them and changes none. Were it to
//! register its own configuration, a narrower one would park the tasks of everybody else's handlers.

use std::collections::BTreeMap;

use pointsman_core::store::{Registration, Registry, StoreError};
use pointsman_core::{HandlerDef, HandlerName};

use crate::{BoundedRun, HandlerSpec, Setup};

/// Why a bounded run cannot work on a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundedRunError {
    #[error("the store knows of no handlers yet")]
    NoHandlersRegistered,
    #[error("the store knows of no handler {0}")]
    HandlerNotRegistered(HandlerName),
    #[error("the store has the handler {0} otherwise than the configuration says")]
    HandlerDiffers(HandlerName),
}

impl BoundedRun {
    /// Whether what is to be run is set up as the store has it.
    pub async fn check_registered_handlers(
        &self,
        store: &(impl Registry + ?Sized),
        setup: &Setup,
    ) -> Result<Result<(), BoundedRunError>, StoreError> {
        Ok(self.compare_handlers(&store.registration().await?, setup))
    }

    fn compare_handlers(&self, registered: &Registration, setup: &Setup) -> Result<(), BoundedRunError> {
        if registered.handlers.is_empty() {
            return Err(BoundedRunError::NoHandlersRegistered);
        }
        let registered_defs: BTreeMap<&HandlerName, &HandlerDef> =
            registered.handlers.iter().map(|def| (&def.name, def)).collect();
        for HandlerSpec { def, .. } in setup.handlers.iter().filter(|spec| self.runs_handler(spec)) {
            match registered_defs.get(&def.name) {
                Some(existing) if *existing == def => {}
                Some(_) => return Err(BoundedRunError::HandlerDiffers(def.name.clone())),
                None => return Err(BoundedRunError::HandlerNotRegistered(def.name.clone())),
            }
        }
        Ok(())
    }

    fn runs_handler(&self, spec: &HandlerSpec) -> bool {
        !spec.def.pull && self.includes_handler(&spec.def.name)
    }

    pub(crate) fn includes_handler(&self, handler: &HandlerName) -> bool {
        self.handlers.is_empty() || self.handlers.contains(handler)
    }
}

/// What a bounded run works with: of its handlers those that the store has just so, and the routes and chains of the
/// store.
pub(crate) fn restrict_to_registered(setup: Setup, registered: Registration) -> Setup {
    let Registration { by: _, handlers: registered_defs, routes, tenants, chains, chain_routes, files } =
        registered;
    let is_registered = |spec: &HandlerSpec| registered_defs.contains(&spec.def);
    let handlers = setup.handlers.into_iter().filter(is_registered).collect();
    Setup {
        handlers,
        routes,
        tenant_weights: tenants,
        chains,
        chain_routes,
        file_digests: files,
        schedules: setup.schedules,
    }
}

//! Bounded runs: nodes that stop after a number of attempts, in addition to the nodes that run permanently.
//!
//! A bounded run uses the handlers and routes that are registered in the store and changes none. If it registered its
//! own configuration, and that had fewer handlers, the tasks of all other handlers would be marked missing.

use std::collections::BTreeMap;

use pointsman_core::store::{Registration, Registry, StoreError};
use pointsman_core::{HandlerDef, HandlerName};

use crate::{BoundedRun, HandlerSpec, Setup};

/// Why a bounded run cannot use a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundedRunError {
    /// No node has registered handlers in the store.
    #[error("no handlers are registered in the store yet")]
    NoHandlersRegistered,
    /// The store has no handler of this name.
    #[error("handler {0} is not registered in the store")]
    HandlerNotRegistered(HandlerName),
    /// The store's definition of this handler differs from this node's.
    #[error("handler {0} is registered in the store with other settings than in this configuration")]
    HandlerDiffers(HandlerName),
}

impl BoundedRun {
    /// Checks that the handlers to be run are registered in the store with the same definition.
    pub async fn check_registered_handlers(
        &self,
        store: &(impl Registry + ?Sized),
        setup: &Setup,
    ) -> Result<Result<(), BoundedRunError>, StoreError> {
        Ok(self.compare_handlers_with_registered(&store.read_merged_registration().await?, setup))
    }

    fn compare_handlers_with_registered(
        &self,
        registered: &Registration,
        setup: &Setup,
    ) -> Result<(), BoundedRunError> {
        if registered.handlers.is_empty() {
            return Err(BoundedRunError::NoHandlersRegistered);
        }
        let registered_defs: BTreeMap<&HandlerName, &HandlerDef> =
            registered.handlers.iter().map(|def| (&def.name, def)).collect();
        for HandlerSpec { def, .. } in
            setup.handlers.iter().filter(|spec| self.includes_non_pull_handler(spec))
        {
            match registered_defs.get(&def.name) {
                Some(registered_def) if *registered_def == def => {}
                Some(_) => return Err(BoundedRunError::HandlerDiffers(def.name.clone())),
                None => return Err(BoundedRunError::HandlerNotRegistered(def.name.clone())),
            }
        }
        Ok(())
    }

    fn includes_non_pull_handler(&self, spec: &HandlerSpec) -> bool {
        !spec.def.pull && self.includes_handler(&spec.def.name)
    }

    pub(crate) fn includes_handler(&self, handler: &HandlerName) -> bool {
        self.handlers.is_empty() || self.handlers.contains(handler)
    }
}

/// Returns the setup of a bounded run: those of its handlers that are registered with the same definition, and the
/// registered routes and chains.
pub(crate) fn restrict_setup_to_registered(setup: Setup, registered: Registration) -> Setup {
    let Registration {
        registration_name: _,
        handlers: registered_defs,
        routes,
        tenant_weights,
        chains,
        chain_routes,
        configured_object_digests: file_digests,
    } = registered;
    let is_registered = |spec: &HandlerSpec| registered_defs.contains(&spec.def);
    let handlers = setup.handlers.into_iter().filter(is_registered).collect();
    Setup { handlers, routes, tenant_weights, chains, chain_routes, file_digests, schedules: setup.schedules }
}

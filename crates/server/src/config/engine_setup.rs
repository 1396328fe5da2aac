//! Converts a configuration into the setup of the engine.

use std::sync::Arc;

use pointsman_core::ErrorChain;
use pointsman_engine::handlers::command::CommandHandler;
#[cfg(feature = "http")]
use pointsman_engine::handlers::http::{HttpHandler, HttpTarget};
use pointsman_engine::{HandlerSpec, Runner, Setup};

use super::Config;
use super::fault::{ConfigFaults, Findings};
use super::handler_run::HandlerRunConfig;

impl Config {
    /// Creates the handlers and the rest of the engine's setup. An error from creating a handler is a fault at the
    /// handler's location.
    pub fn build_setup(&self) -> Result<Setup, ConfigFaults> {
        let mut findings = Findings::default();
        let mut handlers = Vec::with_capacity(self.handlers.len() + self.sources.len());
        for handler in self.handlers.iter().chain(&self.sources) {
            match self.build_runner(&handler.run) {
                Ok(runner) => {
                    handlers.push(HandlerSpec {
                        def: handler.def.clone(),
                        attempt_timeout: handler.run.timeout(),
                        runner,
                    });
                }
                Err(reason) => findings.add_fault(&handler.location, reason),
            }
        }
        let setup = Setup {
            handlers,
            routes: self.routes.clone(),
            tenant_weights: self.tenant_weights.clone(),
            schedules: self
                .schedules
                .iter()
                .map(|schedule_config| schedule_config.schedule.clone())
                .collect(),
            chains: self.chains.iter().map(|chain_config| chain_config.chain.clone()).collect(),
            chain_routes: self.chain_routes.clone(),
            file_digests: self.compute_digests(),
        };
        findings.into_result(Some(setup), &self.merged_tree.location).map(|(setup, _)| setup)
    }

    /// Creates the runner of a handler; none for a pull handler, which external workers run.
    fn build_runner(&self, run: &HandlerRunConfig) -> Result<Option<Arc<dyn Runner>>, String> {
        match run {
            #[cfg(not(feature = "http"))]
            HandlerRunConfig::Http(_) => {
                Err("this program was compiled without the Cargo feature `http`, which HTTP handlers need"
                    .into())
            }
            #[cfg(feature = "http")]
            HandlerRunConfig::Http(http) => {
                let target = HttpTarget {
                    url: http.url.clone(),
                    webhook_secrets: http.signing_secrets.clone(),
                    headers: http.headers.clone(),
                    network_access: self.network_access.clone(),
                };
                let handler = HttpHandler::new(target).map_err(|error| ErrorChain(&error).to_string())?;
                Ok(Some(Arc::new(handler)))
            }
            HandlerRunConfig::Command(command) => {
                let handler = CommandHandler::new(command.spec.clone()).map_err(|error| error.to_string())?;
                Ok(Some(Arc::new(handler)))
            }
            HandlerRunConfig::Pull => Ok(None),
        }
    }
}

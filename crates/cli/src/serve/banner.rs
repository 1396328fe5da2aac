//! What a server says on standard output when it runs: where it is, and who may come in.

use pointsman_api::client::DEFAULT_URL;
use pointsman_server::Server;
use pointsman_server::config::Config;

use crate::failure::Result;
use crate::output::Output;

/// What the banner needs to know of a configuration that is about to be used up.
pub(super) struct Banner {
    store: String,
    /// Other nodes may be at work on it.
    shared: bool,
    handlers: usize,
    sources: usize,
    chains: usize,
    workers: usize,
    has_tokens: bool,
}

impl Banner {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            store: config.store.to_string(),
            shared: config.store.shared().is_some(),
            handlers: config.handlers.len(),
            sources: config.sources.len(),
            chains: config.chains.len(),
            workers: config.workers,
            has_tokens: !config.tokens.is_empty(),
        }
    }

    pub(super) fn show(&self, server: &Server, output: Output) -> Result {
        let url = server.address().map(|address| format!("http://{address}"));
        if output.is_json() {
            let told = serde_json::json!({"url": url, "store": self.store, "token": server.first_token()});
            return Ok(output.json(&told)?);
        }
        let title = format!("Pointsman {} is running", env!("CARGO_PKG_VERSION"));
        output.line(output.paint.bold(&title))?;
        output.line("")?;
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let mut work = count(self.handlers, "handler");
        for (n, what) in [(self.sources, "source"), (self.chains, "chain")] {
            if n > 0 {
                work = format!("{work}, {}", count(n, what));
            }
        }
        let address =
            url.as_ref().map_or("none: this process answers no HTTP".into(), |url| format!("{url}/"));
        let mut facts = vec![("address", address)];
        // What stands behind `#` is not sent to the server: the console takes it from there.
        if let (Some(url), Some(token)) = (&url, server.first_token()) {
            facts.push(("console", format!("{url}/#token={token}")));
        }
        facts.extend([
            ("store", self.store.clone()),
            ("work", format!("{work}, up to {} tasks at a time", self.workers)),
            ("token", self.token(server).into()),
        ]);
        output.facts(&facts)?;
        // Where commands look without being told, they need not be told.
        let url = url.filter(|url| url != DEFAULT_URL).map(|url| format!("URL={url}"));
        let token = server.first_token().map(|token| format!("TOKEN={token}"));
        if url.is_some() || token.is_some() {
            output.line("")?;
        }
        for variable in url.into_iter().chain(token) {
            output.line(output.paint.bold(&format!("    export POINTSMAN_{variable}")))?;
        }
        output.line("")?;
        Ok(())
    }

    fn token(&self, server: &Server) -> &'static str {
        if server.address().is_none() {
            ""
        } else if self.has_tokens {
            "those of the configuration"
        } else if server.first_token().is_some() && self.shared {
            "made just now for all nodes on this database, and shown only this once; `auth.tokens` in their \
             configuration replaces it:"
        } else if server.first_token().is_some() {
            "made just now, and shown only this once; in the terminals that are to use it:"
        } else if self.shared {
            "the one that the first node on this database showed; `auth.tokens` in the configuration replaces it"
        } else {
            "the one made on the first start; to get another, delete the .token file beside the store"
        }
    }
}

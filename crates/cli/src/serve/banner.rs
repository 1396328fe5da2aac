//! The banner that a started server prints: its address, store and token.

use pointsman_api::client::DEFAULT_URL;
use pointsman_server::Server;
use pointsman_server::config::Config;

use crate::failure::CommandResult;
use crate::output::Output;

/// The values of the configuration that the banner prints; the server consumes the configuration itself.
pub(super) struct Banner {
    store_url: String,
    /// Whether other nodes can use the store.
    is_store_shared: bool,
    handler_count: usize,
    source_count: usize,
    chain_count: usize,
    max_running_tasks: usize,
    has_configured_tokens: bool,
}

impl Banner {
    pub(super) fn from_config(config: &Config) -> Self {
        Self {
            store_url: config.store_url.to_string(),
            is_store_shared: config.store_url.shared_database_url().is_some(),
            handler_count: config.handlers.len(),
            source_count: config.sources.len(),
            chain_count: config.chains.len(),
            max_running_tasks: config.max_running_tasks,
            has_configured_tokens: !config.tokens.is_empty(),
        }
    }

    pub(super) fn print(&self, server: &Server, output: Output) -> CommandResult {
        let url = server.address().map(|address| format!("http://{address}"));
        if output.is_json() {
            let banner =
                serde_json::json!({"url": url, "store": self.store_url, "token": server.first_token()});
            return Ok(output.print_json(&banner)?);
        }
        let title = format!("Pointsman {} is running", env!("CARGO_PKG_VERSION"));
        output.print_line(output.paint.bold(&title))?;
        output.print_line("")?;
        let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
        let mut work = count(self.handler_count, "handler");
        for (n, noun) in [(self.source_count, "source"), (self.chain_count, "chain")] {
            if n > 0 {
                work = format!("{work}, {}", count(n, noun));
            }
        }
        let address =
            url.as_ref().map_or("none: HTTP is disabled in this process".into(), |url| format!("{url}/"));
        let mut fields = vec![("address", address)];
        // The part after `#` is not sent to the server; the console reads the token from it.
        if let (Some(url), Some(token)) = (&url, server.first_token()) {
            fields.push(("console", format!("{url}/#token={token}")));
        }
        fields.extend([
            ("store", self.store_url.clone()),
            ("runs", format!("{work}, up to {} tasks at a time", self.max_running_tasks)),
            ("token", self.describe_token_origin(server).into()),
        ]);
        output.print_fields(&fields)?;
        // The commands use the default URL if the variable is not set.
        let url = url.filter(|url| url != DEFAULT_URL).map(|url| format!("URL={url}"));
        let token = server.first_token().map(|token| format!("TOKEN={token}"));
        if url.is_some() || token.is_some() {
            output.print_line("")?;
        }
        for variable in url.into_iter().chain(token) {
            output.print_line(output.paint.bold(&format!("    export POINTSMAN_{variable}")))?;
        }
        output.print_line("")?;
        Ok(())
    }

    fn describe_token_origin(&self, server: &Server) -> &'static str {
        if server.address().is_none() {
            ""
        } else if self.has_configured_tokens {
            "the tokens of the configuration"
        } else if server.first_token().is_some() && self.is_store_shared {
            "created now for all nodes on this database and shown only once; `auth.tokens` in their configuration \
             replaces it:"
        } else if server.first_token().is_some() {
            "created now and shown only once; set it in the terminals that use it:"
        } else if self.is_store_shared {
            "printed by the first node on this database; `auth.tokens` in the configuration replaces it"
        } else {
            "printed on the first start; to get a new one, delete the .token file next to the store and restart"
        }
    }
}

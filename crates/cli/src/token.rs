//! `pointsman token`: tokens for the configuration.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use pointsman_core::{HandlerName, Tenant};
use pointsman_server::auth::{self, Role};

use crate::args::Global;
use crate::failure::Result;
use crate::output::Output;

/// Make tokens
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman token new
  pointsman token new --name shop --role producer --tenant shop")]
pub(crate) struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    New(New),
}

/// Make a token, and print it with its line for the configuration
///
/// Nothing is stored anywhere: the token goes to whoever will use it, the line with its hash into the `auth:`
/// section of the server's configuration.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman token new
  pointsman token new --name shop --role producer --tenant shop
  pointsman token new -o json | jq -r .token > shop.token

Roles:
  viewer     reads everything, changes nothing
  producer   emits events
  worker     fetches the tasks of pulled handlers, and tells how they ended
  operator   reads, runs, retries, cancels, pauses, adopts
  admin      may do all of it, block, and read the audit")]
struct New {
    /// What to call it
    #[arg(long, default_value = "me")]
    name: HandlerName,
    /// What it may do
    #[arg(long, default_value_t = Role::Admin, value_parser = role())]
    role: Role,
    /// The only tenant it may act for
    #[arg(long)]
    tenant: Option<Tenant>,
}

/// One of those that there are; clap then knows which is meant by one that is nearly so.
fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|role| role.parse())
}

impl Token {
    pub(crate) fn run(self, global: &Global) -> Result {
        let Action::New(new) = self.action;
        let output = Output::new(global);
        let token = auth::new_token();
        let sha256: String = auth::hash(&token).iter().map(|byte| format!("{byte:02x}")).collect();
        if output.is_json() {
            return Ok(output.json(&serde_json::json!({
                "token": token,
                "name": new.name,
                "role": new.role.as_str(),
                "tenant": new.tenant,
                "sha256": sha256,
            }))?);
        }
        output.line(&token)?;
        output.line("")?;
        output.line("It is shown only this once. In the server's configuration:")?;
        output.line("")?;
        output.line("auth:")?;
        output.line("  tokens:  # these two lines once; each further token adds one like the one below")?;
        output.line(format!("    - {{{}}}", new.line(&sha256)))?;
        Ok(())
    }
}

impl New {
    /// The entry of the configuration. The hash is quoted: one of digits alone would read as a number.
    fn line(&self, sha256: &str) -> String {
        let tenant = self.tenant.as_ref().map(|tenant| format!("tenant: \"{tenant}\", ")).unwrap_or_default();
        format!("name: \"{}\", role: {}, {tenant}sha256: \"{sha256}\"", self.name, self.role)
    }
}

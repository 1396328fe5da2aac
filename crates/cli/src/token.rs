//! `pointsman token`: creates tokens for the configuration.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use pointsman_core::{HandlerName, Tenant};
use pointsman_server::auth::{self, Role};

use crate::args::GlobalOptions;
use crate::failure::CommandResult;
use crate::output::Output;

/// Create tokens
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman token new
  pointsman token new --name shop --role producer --tenant shop")]
pub(crate) struct TokenCommand {
    #[command(subcommand)]
    subcommand: TokenSubcommand,
}

#[derive(Debug, Subcommand)]
enum TokenSubcommand {
    New(NewTokenCommand),
}

/// Create a token and print it with its line for the configuration
///
/// The token is not stored: give it to its user, and add the line with its hash to `auth.tokens` in the server's
/// configuration. A server with `auth.tokens` accepts only those tokens, so the token that it created on its first start
/// is no longer valid.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman token new
  pointsman token new --name shop --role producer --tenant shop
  pointsman token new -o json | jq -r .token > shop.token

Roles:
  viewer     reads everything, changes nothing
  producer   emits events
  worker     claims the tasks of pull handlers and reports their results
  operator   reads, runs, retries, cancels, pauses, adopts
  admin      all of these, blocks, and reads the audit log")]
struct NewTokenCommand {
    /// Name of the token
    #[arg(long, default_value = "me")]
    name: HandlerName,
    /// Role
    #[arg(long, default_value_t = Role::Admin, value_parser = role_parser())]
    role: Role,
    /// Restrict the token to this tenant
    #[arg(long)]
    tenant: Option<Tenant>,
}

/// Parses a role; clap suggests a similar one for a typo.
fn role_parser() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|role| role.parse())
}

impl TokenCommand {
    pub(crate) fn run(self, global: &GlobalOptions) -> CommandResult {
        let TokenSubcommand::New(new) = self.subcommand;
        let output = Output::new(global);
        let token = auth::generate_token();
        let sha256: String = auth::hash_token(&token).iter().map(|byte| format!("{byte:02x}")).collect();
        if output.is_json() {
            return Ok(output.print_json(&serde_json::json!({
                "token": token,
                "name": new.name,
                "role": new.role.as_str(),
                "tenant": new.tenant,
                "sha256": sha256,
            }))?);
        }
        output.print_line(&token)?;
        output.print_line("")?;
        output.print_line("The token is shown only once. Add it to the server's configuration:")?;
        output.print_line("")?;
        output.print_line("auth:")?;
        output.print_line("  tokens:  # these two lines once; further tokens add one line each")?;
        output.print_line(format!("    - {{{}}}", new.configuration_entry(&sha256)))?;
        output.print_line("")?;
        output.print_line(
            "A server with `auth.tokens` accepts only those tokens: the token that it created on its first start is no longer valid.",
        )?;
        Ok(())
    }
}

impl NewTokenCommand {
    /// The entry of `auth.tokens`. The hash is quoted: YAML would read one of digits only as a number.
    fn configuration_entry(&self, sha256: &str) -> String {
        let tenant = self.tenant.as_ref().map(|tenant| format!("tenant: \"{tenant}\", ")).unwrap_or_default();
        format!("name: \"{}\", role: {}, {tenant}sha256: \"{sha256}\"", self.name, self.role)
    }
}

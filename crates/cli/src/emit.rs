//! `pointsman emit`: emits one event, or many from a file.

mod file;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use pointsman_api::EventSeq;
use pointsman_api::client::{Client, EmitBody, EventQuery};
use pointsman_core::event::Priority;
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::time::parse_http_duration;
use pointsman_core::{EventType, Json, ObjectKey, Tenant, Timestamp};

use crate::args::{GlobalOptions, parse_time};
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, print_to_stderr};

/// Emit an event and print its id
///
/// When this returns, the event is stored and its tasks are queued. It does not wait for handlers.
#[derive(Debug, Args)]
#[command(override_usage = "\
pointsman emit [OPTIONS] <TYPE>
       pointsman emit [OPTIONS] --file <FILE>")]
#[command(after_long_help = "\
Examples:
  pointsman emit record.published --key record:1 --value '{\"title\":\"Hello\"}'
  pointsman emit report.due --delay 1h --priority 500
  pointsman emit record.published --key record:1 --value @record.json
  date | jq -R . | pointsman emit clock.read --value -

With --file, each line is one event in JSON:
  {\"type\":\"record.published\",\"key\":\"record:1\",\"value\":{\"title\":\"Hello\"}}

Lines are sent in batches; each batch is stored completely or not at all. With --idempotency-key, an interrupted \
file can be sent again: events that are already stored are not stored twice.")]
pub(crate) struct EmitCommand {
    /// Event type: dot-separated words, from general to specific
    #[arg(value_name = "TYPE", required_unless_present = "file")]
    event_type: Option<EventType>,

    /// Object key. Events of one object are handled in order
    #[arg(long)]
    key: Option<ObjectKey>,

    /// Part of the object
    #[arg(long)]
    sub: Option<ObjectKey>,

    /// Payload: JSON, `@file`, or `-` for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    value: Option<String>,

    /// Context entry; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_context_entry)]
    context: Vec<(String, String)>,

    /// Tenant of the event [default: the token's tenant, or `default`]
    #[arg(long)]
    tenant: Option<Tenant>,

    /// Run its tasks after this delay: `90`, `90s`, `1h30m`, `PT90S`
    #[arg(long, value_name = "DURATION", value_parser = validate_duration, conflicts_with = "at")]
    delay: Option<String>,

    /// Run its tasks at this time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,

    /// Priority of its tasks: 1 to 9000, higher first [default: 100]
    #[arg(long, value_name = "N", value_parser = parse_priority)]
    priority: Option<Priority>,

    /// Repeating the command with the same key emits no second event and prints the first id
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,

    /// Emit many events: a file with one JSON object per line; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["event_type", "key", "sub", "value", "context", "tenant", "delay", "at", "priority"])]
    file: Option<PathBuf>,
}

impl EmitCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        match self.file.clone() {
            Some(file) => file::emit_events_from_file(global, &file, self.idempotency_key.as_deref()).await,
            None => self.emit_one(global).await,
        }
    }

    async fn emit_one(self, global: &GlobalOptions) -> CommandResult {
        let output = Output::new(global);
        let key = self.idempotency_key.clone();
        let (client, body) = (global.new_client()?, self.request_body()?);
        let response = client.emit(&body, key.as_deref()).await?;
        if output.is_json() {
            return Ok(output.print_json(&response)?);
        }
        output.print_line(response.last_event_id.to_string())?;
        let is_unhandled = response.events.iter().all(|event| event.tasks.is_empty());
        if is_unhandled && !has_started_order(&client, response.last_event_id).await {
            let suggestion = suggest_event_type(&client, body.event_type.as_str()).await;
            print_to_stderr(format!("no handler or chain is configured for {}{suggestion}", body.event_type));
        }
        Ok(())
    }

    fn request_body(self) -> CommandResult<EmitBody> {
        let event_type = self.event_type.ok_or_else(|| Failure::usage("the event type is missing"))?;
        Ok(EmitBody {
            event_type,
            key: self.key,
            sub_object: self.sub,
            value: self.value.as_deref().map(read_value).transpose()?,
            context: self.context.into_iter().collect(),
            tenant: self.tenant,
            task_delay: self.delay,
            tasks_due_at: self.at,
            priority: self.priority,
        })
    }
}

/// The number of events that are searched for a started order. Its events directly follow the emitted event.
const STARTED_ORDER_SEARCH_LIMIT: i64 = 10;

/// Whether the event started an order: the id of such an order is the id of the event. False if the token may not read
/// events.
async fn has_started_order(client: &Client, id: u64) -> bool {
    let query = EventQuery {
        event_type: Some("FileBasedAdded".into()),
        after: Some(id),
        limit: Some(STARTED_ORDER_SEARCH_LIMIT),
        ..EventQuery::default()
    };
    let Ok(EventSeq::NonEmpty { event_snapshots, .. }) = client.list_events(&query).await else {
        return false;
    };
    let key_suffix = format!(",{id}");
    event_snapshots.iter().any(|event| event.key.as_ref().is_some_and(|key| key.ends_with(&key_suffix)))
}

/// Suggests a routed event type for a mistyped one. Empty if none is similar, or if the token may not list handlers.
async fn suggest_event_type(client: &Client, event_type: &str) -> String {
    let Ok(list) = client.list_handlers().await else { return String::new() };
    let routes = list.handlers.iter().flat_map(|handler| &handler.routes);
    did_you_mean_suffix(event_type, routes.map(|route| route.event_type.as_str()))
}

/// Reads the payload given by `--value`.
pub(crate) fn read_value(text: &str) -> CommandResult<Json> {
    let (origin, json) = match text.strip_prefix('@') {
        Some(file) => {
            let content = std::fs::read_to_string(file);
            (file, content.map_err(|e| Failure::usage(format!("cannot read {file}: {e}")))?)
        }
        None if text == "-" => {
            let mut json = String::new();
            print_stdin_prompt();
            std::io::stdin().read_to_string(&mut json)?;
            ("standard input", json)
        }
        None => ("--value", text.to_owned()),
    };
    Json::parse(&json).map_err(|e| {
        Failure::usage(format!("{origin} is not a valid value: {e}")).with_hint(
            "A JSON string needs double quotes inside the quotes of the shell: --value '\"Hello\"'",
        )
    })
}

/// Prints a note that standard input is being read, if that is a terminal.
fn print_stdin_prompt() {
    if std::io::stdin().is_terminal() {
        print_to_stderr("reading standard input; end it with Ctrl-D on an empty line");
    }
}

fn parse_context_entry(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as NAME=VALUE".into()),
    }
}

/// Checks a duration and returns it unchanged.
pub(crate) fn validate_duration(text: &str) -> Result<String, String> {
    parse_http_duration(text).map(|_| text.into()).map_err(|e| e.to_string())
}

pub(crate) fn parse_priority(text: &str) -> Result<Priority, String> {
    let number: i64 = text.parse().map_err(|_| "a priority is a whole number from 1 to 9000".to_owned())?;
    Priority::try_from(number).map_err(|e| e.to_string())
}

//! `pointsman emit`: one event from the command line, or many from a file.

mod file;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use pointsman_api::EventSeq;
use pointsman_api::client::{Client, EmitBody, EventQuery};
use pointsman_core::event::Priority;
use pointsman_core::time::parse_http_duration;
use pointsman_core::{HandlingKey, Json, ObjectKey, Tenant, Timestamp};
use pointsman_server::config::nearest::hint;

use crate::args::{Global, moment};
use crate::failure::{Failure, Result};
use crate::output::{Output, say};

/// Emit an event, and print its id
///
/// When this returns, the event is on disk and its tasks are queued. It does not wait for handlers.
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

With --file, each line is one event as JSON:
  {\"type\":\"record.published\",\"key\":\"record:1\",\"value\":{\"title\":\"Hello\"}}

Lines are sent in batches; each batch is stored whole or not at all. With --idempotency-key, a file \
whose sending was interrupted can be sent again: what is stored already is not stored twice.")]
pub(crate) struct Emit {
    /// What happened: dot-separated words, from the general to the special
    #[arg(value_name = "TYPE", required_unless_present = "file")]
    kind: Option<HandlingKey>,

    /// What it happened to. Events of one object are handled in order
    #[arg(long)]
    key: Option<ObjectKey>,

    /// A part of the object
    #[arg(long)]
    sub: Option<ObjectKey>,

    /// The payload: JSON, `@file`, or `-` for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    value: Option<String>,

    /// Something about the circumstances; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    context: Vec<(String, String)>,

    /// Whose event it is
    #[arg(long)]
    tenant: Option<Tenant>,

    /// Let its tasks wait: `90`, `90s`, `1h30m`, `PT90S`
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "at")]
    delay: Option<String>,

    /// Let its tasks wait until then: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Timestamp>,

    /// How urgent: 1 to 9000, higher first [default: 100]
    #[arg(long, value_name = "N", value_parser = priority)]
    priority: Option<Priority>,

    /// A repeat with the same key emits nothing and answers the same
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,

    /// Emit many events: a file with one JSON object a line; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "key", "sub", "value", "context", "tenant", "delay", "at", "priority"])]
    file: Option<PathBuf>,
}

impl Emit {
    pub(crate) async fn run(self, global: &Global) -> Result {
        match self.file.clone() {
            Some(file) => file::emit(global, &file, self.idempotency_key.as_deref()).await,
            None => self.one(global).await,
        }
    }

    async fn one(self, global: &Global) -> Result {
        let output = Output::new(global);
        let key = self.idempotency_key.clone();
        let (client, body) = (global.client()?, self.body()?);
        let answer = client.emit(&body, key.as_deref()).await?;
        if output.is_json() {
            return Ok(output.json(&answer)?);
        }
        output.line(answer.event_id.to_string())?;
        let unheard = answer.events.iter().all(|event| event.tasks.is_empty());
        if unheard && !made_an_order(&client, answer.event_id).await {
            let near = nearest_type(&client, body.kind.as_str()).await;
            say(format!("no handler gets {}{near}", body.kind));
        }
        Ok(())
    }

    fn body(self) -> Result<EmitBody> {
        let kind = self.kind.ok_or_else(|| Failure::usage("an event has a type"))?;
        Ok(EmitBody {
            kind,
            key: self.key,
            sub: self.sub,
            value: self.value.as_deref().map(value).transpose()?,
            context: self.context.into_iter().collect(),
            tenant: self.tenant,
            delay: self.delay,
            at: self.at,
            priority: self.priority,
        })
    }
}

/// How many orders are looked at: those of one event come right after it.
const LOOK: i64 = 10;

/// Whether the event made an order: one that has its id. Not all who may emit may look.
async fn made_an_order(client: &Client, id: u64) -> bool {
    let appeared = EventQuery {
        kind: Some("FileBasedAdded".into()),
        after: Some(id),
        limit: Some(LOOK),
        ..EventQuery::default()
    };
    let Ok(EventSeq::NonEmpty { event_snapshots, .. }) = client.events(&appeared).await else { return false };
    let its_own = format!(",{id}");
    event_snapshots.iter().any(|event| event.key.as_ref().is_some_and(|key| key.ends_with(&its_own)))
}

/// The type that was perhaps meant. Not all who may emit may read what handlers there are; they are told nothing.
async fn nearest_type(client: &Client, kind: &str) -> String {
    let Ok(list) = client.handlers().await else { return String::new() };
    let routes = list.handlers.iter().flat_map(|handler| &handler.routes);
    hint(kind, routes.map(|route| route.kind.as_str()))
}

/// The payload that `--value` names.
pub(crate) fn value(text: &str) -> Result<Json> {
    let (from, json) = match text.strip_prefix('@') {
        Some(file) => {
            let read = std::fs::read_to_string(file);
            (file, read.map_err(|e| Failure::usage(format!("cannot read {file}: {e}")))?)
        }
        None if text == "-" => {
            let mut json = String::new();
            tell_who_types();
            std::io::stdin().read_to_string(&mut json)?;
            ("standard input", json)
        }
        None => ("--value", text.to_owned()),
    };
    Json::parse(&json).map_err(|e| {
        Failure::usage(format!("{from} holds no value that can be sent: {e}"))
            .hint("A text needs its quotes, inside those of the shell: --value '\"Hello\"'")
    })
}

/// A person at the keyboard is told what is waited for.
fn tell_who_types() {
    if std::io::stdin().is_terminal() {
        say("reading standard input; Ctrl-D on a line of its own ends it");
    }
}

fn pair(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as NAME=VALUE".into()),
    }
}

pub(crate) fn duration(text: &str) -> std::result::Result<String, String> {
    parse_http_duration(text).map(|_| text.into()).map_err(|e| e.to_string())
}

pub(crate) fn priority(text: &str) -> std::result::Result<Priority, String> {
    let number: i64 = text.parse().map_err(|_| "a priority is a whole number from 1 to 9000".to_owned())?;
    Priority::try_from(number).map_err(|e| e.to_string())
}

//! `pointsman emit`: one event from the command line, or many from a file.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use clap::Args;
use pointsman_api::client::EmitBody;
use pointsman_core::event::Priority;
use pointsman_core::time::parse_http_duration;
use pointsman_core::{HandlingKey, Json, ObjectKey, Tenant, Timestamp};

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::output::{Output, counted};

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

Lines are sent in batches; each batch is stored whole or not at all. With --idempotency-key, a file
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
    #[arg(long, value_name = "TIME")]
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
            Some(file) => many(global, &file, self.idempotency_key.as_deref()).await,
            None => self.one(global).await,
        }
    }

    async fn one(self, global: &Global) -> Result {
        let output = Output::new(global);
        let key = self.idempotency_key.clone();
        let body = self.body()?;
        let answer = global.client()?.emit(&body, key.as_deref()).await?;
        if output.is_json() {
            output.json(&answer)?;
        } else {
            output.line(answer.event_id.to_string())?;
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

/// The payload that `--value` names.
fn value(text: &str) -> Result<Json> {
    let (from, json) = match text.strip_prefix('@') {
        Some(file) => {
            let read = std::fs::read_to_string(file);
            (file, read.map_err(|e| Failure::usage(format!("cannot read {file}: {e}")))?)
        }
        None if text == "-" => {
            let mut json = String::new();
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

/// How many events go in one request, and how many bytes.
const BATCH_EVENTS: usize = 1000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Sends a file of events, batch by batch.
async fn many(global: &Global, file: &std::path::Path, key: Option<&str>) -> Result {
    let (client, output) = (global.client()?, Output::new(global));
    let mut lines = Lines::open(file)?;
    let (mut sent, mut batches, mut last) = (0usize, 0usize, None);
    while let Some(batch) = lines.batch()? {
        // The same file is cut into the same batches, so that each batch can have a key of its own.
        let key = key.map(|key| format!("{key}-{batches}"));
        let answer = client.emit(&batch, key.as_deref()).await.map_err(|e| {
            let failure = Failure::from(e);
            if sent == 0 {
                failure
            } else {
                failure.hint(format!("Stored before that: {}.", counted(sent as u64, "event", "events")))
            }
        })?;
        sent += answer.events.len();
        batches += 1;
        last = Some(answer.event_id);
        if output.is_json() {
            output.json(&answer)?;
        }
    }
    match last {
        None => Err(Failure::usage(format!("{} holds no events", file.display()))),
        Some(_) if output.is_json() => Ok(()),
        Some(id) => {
            Ok(output.line(format!("{}, the last is {id}", counted(sent as u64, "event", "events")))?)
        }
    }
}

/// The events of a file, each checked to be JSON and otherwise sent as it stands.
struct Lines {
    name: String,
    reader: Box<dyn BufRead>,
    number: usize,
    /// Read, but too large for the batch before.
    pending: Option<Json>,
}

impl Lines {
    fn open(file: &std::path::Path) -> Result<Self> {
        let name = file.display().to_string();
        let reader: Box<dyn BufRead> = if name == "-" {
            Box::new(std::io::stdin().lock())
        } else {
            let opened = std::fs::File::open(file);
            Box::new(BufReader::new(opened.map_err(|e| Failure::usage(format!("cannot read {name}: {e}")))?))
        };
        Ok(Self { name, reader, number: 0, pending: None })
    }

    /// The next events that fit one request; none at the end.
    fn batch(&mut self) -> Result<Option<Vec<Json>>> {
        let (mut batch, mut bytes) = (vec![], 0);
        while batch.len() < BATCH_EVENTS {
            let Some(event) = self.next()? else { break };
            bytes += event.as_str().len();
            if bytes > BATCH_BYTES && !batch.is_empty() {
                self.pending = Some(event);
                break;
            }
            batch.push(event);
        }
        Ok((!batch.is_empty()).then_some(batch))
    }

    fn next(&mut self) -> Result<Option<Json>> {
        if let Some(event) = self.pending.take() {
            return Ok(Some(event));
        }
        loop {
            let mut line = String::new();
            self.number += 1;
            if self.reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if line.trim().is_empty() {
                continue;
            }
            return Json::parse(line.trim())
                .map(Some)
                .map_err(|e| Failure::usage(format!("{}, line {}: {e}", self.name, self.number)));
        }
    }
}

fn pair(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as NAME=VALUE".into()),
    }
}

fn duration(text: &str) -> std::result::Result<String, String> {
    parse_http_duration(text).map(|_| text.into()).map_err(|e| e.to_string())
}

fn priority(text: &str) -> std::result::Result<Priority, String> {
    let number: i64 = text.parse().map_err(|_| "a priority is a whole number from 1 to 9000".to_owned())?;
    Priority::try_from(number).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Lines {
        let reader = Box::new(std::io::Cursor::new(text.to_owned()));
        Lines { name: "events".into(), reader, number: 0, pending: None }
    }

    #[test]
    fn a_file_is_cut_into_batches_that_a_request_can_hold() {
        let big = format!("{{\"value\":\"{}\"}}\n", "x".repeat(BATCH_BYTES / 2));
        let mut file = lines(&format!("{big}\n{big}{big}"));
        let sizes: Vec<usize> =
            std::iter::from_fn(|| file.batch().unwrap_or(None)).map(|batch| batch.len()).collect();
        assert_eq!(sizes, [1, 1, 1]);

        let mut file = lines(&"{}\n".repeat(BATCH_EVENTS + 1));
        let sizes: Vec<usize> =
            std::iter::from_fn(|| file.batch().unwrap_or(None)).map(|batch| batch.len()).collect();
        assert_eq!(sizes, [BATCH_EVENTS, 1]);
    }

    #[test]
    fn a_line_that_is_no_json_is_named_by_its_number() {
        let mut file = lines("{}\n\nnonsense\n");
        assert!(format!("{:?}", file.batch()).contains("line 3"));
    }
}

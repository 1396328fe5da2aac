//! `pointsman emit --file`: many events, one JSON object a line.

use std::io::{BufRead, BufReader};
use std::path::Path;

use pointsman_api::client::ClientError;
use pointsman_core::Json;

use super::tell_who_types;
use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::output::{Output, Progress, counted, say};

/// How many events go in one request, and how many bytes.
const BATCH_EVENTS: usize = 1000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Sends a file of events, batch by batch.
pub(super) async fn emit(global: &Global, file: &Path, key: Option<&str>) -> Result {
    let (client, output) = (global.client()?, Output::new(global));
    let mut lines = Lines::open(file)?;
    let progress = Progress::endless();
    let (mut sent, mut batches, mut unheard, mut last) = (0usize, 0usize, 0usize, None);
    while let Some(batch) = lines.batch()? {
        // The same file is cut into the same batches, so that each batch can have a key of its own.
        let key = key.map(|key| format!("{key}-{batches}"));
        let answer = client.emit(&batch.events, key.as_deref()).await.map_err(|e| {
            let failure = lines.fault(&batch, e);
            if sent == 0 {
                failure
            } else {
                failure.hint(format!("Stored before that: {}.", counted(sent as u64, "event", "events")))
            }
        })?;
        sent += answer.events.len();
        unheard += answer.events.iter().filter(|event| event.tasks.is_empty()).count();
        batches += 1;
        last = Some(answer.event_id);
        if output.is_json() {
            output.json(&answer)?;
        }
        progress.doing(counted(sent as u64, "event", "events"));
    }
    drop(progress);
    match last {
        None => Err(Failure::usage(format!("{} holds no events", file.display()))),
        Some(_) if output.is_json() => Ok(()),
        Some(id) => {
            output.line(format!("{}, the last is {id}", counted(sent as u64, "event", "events")))?;
            if unheard > 0 {
                say(format!("no handler gets {unheard} of them"));
            }
            Ok(())
        }
    }
}

/// Events that go in one request, and where each of them stands.
#[derive(Debug, Default)]
struct Batch {
    events: Vec<Json>,
    lines: Vec<usize>,
}

/// The events of a file, each checked to be JSON and otherwise sent as it stands.
struct Lines {
    name: String,
    reader: Box<dyn BufRead>,
    number: usize,
    /// Read, but too large for the batch before; with its line.
    pending: Option<(usize, Json)>,
}

impl Lines {
    fn open(file: &Path) -> Result<Self> {
        let name = file.display().to_string();
        let reader: Box<dyn BufRead> = if name == "-" {
            tell_who_types();
            Box::new(std::io::stdin().lock())
        } else {
            let opened = std::fs::File::open(file);
            Box::new(BufReader::new(opened.map_err(|e| Failure::usage(format!("cannot read {name}: {e}")))?))
        };
        Ok(Self { name, reader, number: 0, pending: None })
    }

    /// The next events that fit one request; none at the end.
    fn batch(&mut self) -> Result<Option<Batch>> {
        let (mut batch, mut bytes) = (Batch::default(), 0);
        while batch.events.len() < BATCH_EVENTS {
            let Some((line, event)) = self.next()? else { break };
            bytes += event.as_str().len();
            if bytes > BATCH_BYTES && !batch.events.is_empty() {
                self.pending = Some((line, event));
                break;
            }
            batch.events.push(event);
            batch.lines.push(line);
        }
        Ok((!batch.events.is_empty()).then_some(batch))
    }

    /// Why a batch was refused. The server points at an event by its place in the request; whoever wrote the file
    /// knows it by its line.
    fn fault(&self, batch: &Batch, error: ClientError) -> Failure {
        let ClientError::Refused(problem) = &error else { return error.into() };
        let pointer = problem.pointer.as_deref().and_then(|pointer| pointer.strip_prefix('/'));
        let Some(pointer) = pointer else { return error.into() };
        let (index, member) = pointer.split_once('/').unwrap_or((pointer, ""));
        let Some(line) = index.parse().ok().and_then(|index: usize| batch.lines.get(index)) else {
            return error.into();
        };
        let at = if member.is_empty() { String::new() } else { format!(" (at `{member}`)") };
        Failure::runtime(format!("{}, line {line}: {}{at}", self.name, problem.detail))
    }

    fn next(&mut self) -> Result<Option<(usize, Json)>> {
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
                .map(|event| Some((self.number, event)))
                .map_err(|e| Failure::usage(format!("{}, line {}: {e}", self.name, self.number)));
        }
    }
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
            std::iter::from_fn(|| file.batch().unwrap_or(None)).map(|batch| batch.events.len()).collect();
        assert_eq!(sizes, [1, 1, 1]);

        let mut file = lines(&"{}\n".repeat(BATCH_EVENTS + 1));
        let sizes: Vec<usize> =
            std::iter::from_fn(|| file.batch().unwrap_or(None)).map(|batch| batch.events.len()).collect();
        assert_eq!(sizes, [BATCH_EVENTS, 1]);
    }

    #[test]
    fn a_line_that_is_no_json_is_named_by_its_number() {
        let mut file = lines("{}\n\nnonsense\n");
        assert!(format!("{:?}", file.batch()).contains("line 3"));
    }

    #[test]
    fn a_fault_that_the_server_found_is_named_by_its_line() {
        let mut file = lines("{}\n\n{}\n");
        let batch = file.batch().unwrap().unwrap();
        let refused = |pointer: &str| {
            let problem = serde_json::json!({"type": "t", "title": "Malformed", "status": 400, "detail": "no type",
                "pointer": pointer});
            ClientError::Refused(Box::new(serde_json::from_value(problem).unwrap()))
        };
        let told = |pointer| file.fault(&batch, refused(pointer)).to_string();
        assert_eq!(told("/1/type"), "events, line 3: no type (at `type`)");
        assert_eq!(told("/0"), "events, line 1: no type");
        assert_eq!(told("/7"), "no type (at `/7`; HTTP 400)");
        assert_eq!(told(""), "no type (at ``; HTTP 400)");
    }
}

//! `pointsman emit --file`: many events, one JSON object per line.

use std::io::{BufRead, BufReader};
use std::path::Path;

use pointsman_api::client::ClientError;
use pointsman_core::Json;

use super::print_stdin_prompt;
use crate::args::GlobalOptions;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, Progress, format_count, print_to_stderr};

/// The limits of one request, in events and in bytes.
const MAX_BATCH_EVENTS: usize = 1000;
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Sends a file of events, batch by batch.
pub(super) async fn emit_events_from_file(
    global: &GlobalOptions,
    file: &Path,
    key: Option<&str>,
) -> CommandResult {
    let (client, output) = (global.new_client()?, Output::new(global));
    let mut events = EventFile::open(file)?;
    let progress = Progress::new_spinner();
    let (mut sent, mut batches, mut unhandled, mut last_id) = (0usize, 0usize, 0usize, None);
    while let Some(batch) = events.next_batch()? {
        // The same file always splits into the same batches, so that each batch can have its own key.
        let key = key.map(|key| format!("{key}-{batches}"));
        let response = client.emit(&batch.events, key.as_deref()).await.map_err(|e| {
            let failure = events.refused_batch_failure(&batch, e);
            if sent == 0 {
                failure
            } else {
                failure
                    .with_hint(format!("Already stored: {}.", format_count(sent as u64, "event", "events")))
            }
        })?;
        sent += response.events.len();
        unhandled += response.events.iter().filter(|event| event.tasks.is_empty()).count();
        batches += 1;
        last_id = Some(response.last_event_id);
        if output.is_json() {
            output.print_json(&response)?;
        }
        progress.set_message(format_count(sent as u64, "event", "events"));
    }
    drop(progress);
    match last_id {
        None => Err(Failure::usage(format!("{} contains no events", file.display()))),
        Some(_) if output.is_json() => Ok(()),
        Some(id) => {
            output.print_line(format!(
                "{} emitted, the last id is {id}",
                format_count(sent as u64, "event", "events")
            ))?;
            if unhandled > 0 {
                let events = format_count(unhandled as u64, "event", "events");
                print_to_stderr(format!("no handler is configured for {events}"));
            }
            Ok(())
        }
    }
}

/// The events of one request, with their line numbers.
#[derive(Debug, Default)]
struct EventBatch {
    events: Vec<Json>,
    line_numbers: Vec<usize>,
}

/// Reads the events of a file. Each line is checked to be JSON and sent unchanged.
struct EventFile {
    name: String,
    reader: Box<dyn BufRead>,
    line_number: usize,
    /// An event that did not fit into the last batch, with its line number. The next batch starts with it.
    carried_over_event: Option<(usize, Json)>,
}

impl EventFile {
    fn open(file: &Path) -> CommandResult<Self> {
        let name = file.display().to_string();
        let reader: Box<dyn BufRead> = if name == "-" {
            print_stdin_prompt();
            Box::new(std::io::stdin().lock())
        } else {
            let opened = std::fs::File::open(file);
            Box::new(BufReader::new(opened.map_err(|e| Failure::usage(format!("cannot read {name}: {e}")))?))
        };
        Ok(Self { name, reader, line_number: 0, carried_over_event: None })
    }

    /// The next events that fit one request; none at the end of the file.
    fn next_batch(&mut self) -> CommandResult<Option<EventBatch>> {
        let (mut batch, mut bytes) = (EventBatch::default(), 0);
        while batch.events.len() < MAX_BATCH_EVENTS {
            let Some((line, event)) = self.next_event()? else { break };
            bytes += event.as_str().len();
            if bytes > MAX_BATCH_BYTES && !batch.events.is_empty() {
                self.carried_over_event = Some((line, event));
                break;
            }
            batch.events.push(event);
            batch.line_numbers.push(line);
        }
        Ok((!batch.events.is_empty()).then_some(batch))
    }

    /// Converts the error of a refused batch. The server names the wrong event by its index in the request; the message
    /// names the line of the file instead.
    fn refused_batch_failure(&self, batch: &EventBatch, error: ClientError) -> Failure {
        let ClientError::ErrorResponse(problem) = &error else { return error.into() };
        let pointer = problem.pointer.as_deref().and_then(|pointer| pointer.strip_prefix('/'));
        let Some(pointer) = pointer else { return error.into() };
        let (index, member) = pointer.split_once('/').unwrap_or((pointer, ""));
        let Some(line) = index.parse().ok().and_then(|index: usize| batch.line_numbers.get(index)) else {
            return error.into();
        };
        let location = if member.is_empty() { String::new() } else { format!(" (at `{member}`)") };
        Failure::runtime(format!("{}, line {line}: {}{location}", self.name, problem.detail))
    }

    fn next_event(&mut self) -> CommandResult<Option<(usize, Json)>> {
        if let Some(event) = self.carried_over_event.take() {
            return Ok(Some(event));
        }
        loop {
            let mut line = String::new();
            self.line_number += 1;
            if self.reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if line.trim().is_empty() {
                continue;
            }
            return Json::parse(line.trim())
                .map(|event| Some((self.line_number, event)))
                .map_err(|e| Failure::usage(format!("{}, line {}: {e}", self.name, self.line_number)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_event_file(text: &str) -> EventFile {
        let reader = Box::new(std::io::Cursor::new(text.to_owned()));
        EventFile { name: "events".into(), reader, line_number: 0, carried_over_event: None }
    }

    #[test]
    fn a_file_is_split_into_batches_within_the_limits() {
        let big = format!("{{\"value\":\"{}\"}}\n", "x".repeat(MAX_BATCH_BYTES / 2));
        let mut file = new_event_file(&format!("{big}\n{big}{big}"));
        let sizes: Vec<usize> = std::iter::from_fn(|| file.next_batch().unwrap_or(None))
            .map(|batch| batch.events.len())
            .collect();
        assert_eq!(sizes, [1, 1, 1]);

        let mut file = new_event_file(&"{}\n".repeat(MAX_BATCH_EVENTS + 1));
        let sizes: Vec<usize> = std::iter::from_fn(|| file.next_batch().unwrap_or(None))
            .map(|batch| batch.events.len())
            .collect();
        assert_eq!(sizes, [MAX_BATCH_EVENTS, 1]);
    }

    #[test]
    fn invalid_json_is_reported_with_its_line_number() {
        let mut file = new_event_file("{}\n\nnonsense\n");
        assert!(format!("{:?}", file.next_batch()).contains("line 3"));
    }

    #[test]
    fn a_refused_event_is_reported_with_its_line_number() {
        let mut file = new_event_file("{}\n\n{}\n");
        let batch = file.next_batch().unwrap().unwrap();
        let refused = |pointer: &str| {
            let problem = serde_json::json!({"type": "t", "title": "Malformed", "status": 400, "detail": "no type",
                "pointer": pointer});
            ClientError::ErrorResponse(Box::new(serde_json::from_value(problem).unwrap()))
        };
        let message = |pointer| file.refused_batch_failure(&batch, refused(pointer)).to_string();
        assert_eq!(message("/1/type"), "events, line 3: no type (at `type`)");
        assert_eq!(message("/0"), "events, line 1: no type");
        assert_eq!(message("/7"), "no type (at `/7`; HTTP 400)");
        assert_eq!(message(""), "no type (at ``; HTTP 400)");
    }
}

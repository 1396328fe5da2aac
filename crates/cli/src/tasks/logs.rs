//! `pointsman tasks logs`: the log of a task, complete or live.

use clap::Args;
use pointsman_api::LogLineBody;
use pointsman_api::client::{Client, LogQuery};
use pointsman_core::Timestamp;
use pointsman_core::task::LogLevel;

use super::{resolve_id, task_request_failure};
use crate::args::parse_time;
use crate::failure::{CommandResult, ExitReason, Failure};
use crate::output::{Output, Paint, escape_controls, time_of_day};

/// Print the log of a task
///
/// Each line starts with its time. Lines written to standard error are marked with `!`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman tasks logs ID
  pointsman tasks logs -f ID
  pointsman tasks logs ID --start '2026-01-31 12:00:00' --end '2026-01-31 12:05:00'
  pointsman tasks logs ID -o json | jq -r 'select(.level == \"error\").message'")]
pub(crate) struct TaskLogsCommand {
    /// Id of the task, or the end of it
    id: String,
    /// Follow the log until the task ends
    #[arg(short, long)]
    follow: bool,
    /// Only lines written at or after this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    start: Option<Timestamp>,
    /// Only lines written before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    end: Option<Timestamp>,
}

impl TaskLogsCommand {
    pub(super) async fn run(self, client: &Client, output: Output) -> CommandResult {
        if let (Some(start), Some(end)) = (self.start, self.end)
            && end <= start
        {
            return Err(Failure::usage("--end must be after --start"));
        }
        let query = LogQuery {
            written_from: self.start.map(|time| time.to_string()),
            written_before: self.end.map(|time| time.to_string()),
        };
        let id = resolve_id::resolve_task_id(client, &self.id).await?;
        if self.follow {
            return follow_log(client, output, &id, &query).await;
        }
        let list = match client.read_task_logs(&id, &query).await {
            Ok(list) => list,
            Err(error) => return Err(task_request_failure(client, &id, error).await),
        };
        list.logs.iter().try_for_each(|line| print_log_line(output, line))
    }
}

/// Prints log lines as they arrive, until the task ends.
pub(crate) async fn follow_log(client: &Client, output: Output, id: &str, query: &LogQuery) -> CommandResult {
    let mut frames = match client.follow_task_logs(id, query).await {
        Ok(frames) => frames,
        Err(error) => return Err(task_request_failure(client, id, error).await),
    };
    while let Some(frame) = frames.next().await? {
        match frame.event_name.as_str() {
            "log" => print_log_line(output, &serde_json::from_str(&frame.data)?)?,
            // The task has ended; `tasks show` prints the outcome.
            "end" => return Ok(()),
            _ => {}
        }
    }
    Err(Failure::new(ExitReason::Unavailable, "the server closed the stream before the task ended")
        .with_hint("The server may have been stopped. Try again in a moment; the log is kept."))
}

fn print_log_line(output: Output, line: &LogLineBody) -> CommandResult {
    match output.is_json() {
        true => Ok(output.print_json(line)?),
        false => Ok(output.print_line(format_log_line(output.paint, line))?),
    }
}

/// A log line as text. Errors have a mark, so that they are visible without colours and can be searched.
fn format_log_line(paint: Paint, line: &LogLineBody) -> String {
    let (time, message) = (paint.dim(time_of_day(&line.time)), escape_controls(&line.message));
    match line.level {
        LogLevel::Info => format!("{time}   {message}"),
        LogLevel::Error => format!("{time} {} {}", paint.red("!"), paint.red(&message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ColorChoice;

    #[test]
    fn error_lines_of_a_log_are_marked_and_messages_stay_aligned() {
        let line =
            |level| LogLineBody { time: "2016-11-04T11:07:35.827000Z".into(), message: "m".into(), level };
        let paint = Paint::for_stdout(ColorChoice::Never);
        assert_eq!(format_log_line(paint, &line(LogLevel::Info)), "11:07:35.827   m");
        assert_eq!(format_log_line(paint, &line(LogLevel::Error)), "11:07:35.827 ! m");
    }
}

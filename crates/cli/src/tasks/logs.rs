//! `pointsman tasks logs`: what a task's handler wrote, whole or as it comes.

use clap::Args;
use pointsman_api::LogBody;
use pointsman_api::client::{Client, LogQuery};
use pointsman_core::Timestamp;
use pointsman_core::task::Level;

use super::{about, named};
use crate::args::moment;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, Paint, clean, clock};

/// Print what a task's handler wrote
///
/// A line begins with its time. One that was written as an error is marked with `!`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman tasks logs ID
  pointsman tasks logs -f ID
  pointsman tasks logs ID --start '2026-01-31 12:00:00' --end '2026-01-31 12:05:00'
  pointsman tasks logs ID -o json | jq -r 'select(.level == \"error\").message'")]
pub(crate) struct Logs {
    /// The task's id, or its end
    id: String,
    /// Go on until the task has ended
    #[arg(short, long)]
    follow: bool,
    /// Lines written at or after this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    start: Option<Timestamp>,
    /// Lines written before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    end: Option<Timestamp>,
}

impl Logs {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        if let (Some(start), Some(end)) = (self.start, self.end)
            && end <= start
        {
            return Err(Failure::usage("--end lies before --start, so that nothing is between them"));
        }
        let query = LogQuery {
            start: self.start.map(|time| time.to_string()),
            end: self.end.map(|time| time.to_string()),
        };
        let id = named::task(client, &self.id).await?;
        if self.follow {
            return follow(client, output, &id, &query).await;
        }
        let list = match client.logs(&id, &query).await {
            Ok(list) => list,
            Err(error) => return Err(about(client, &id, error).await),
        };
        list.logs.iter().try_for_each(|line| print(output, line))
    }
}

/// Prints lines as they come, until the task has ended.
pub(crate) async fn follow(client: &Client, output: Output, id: &str, query: &LogQuery) -> Result {
    let mut frames = match client.follow_logs(id, query).await {
        Ok(frames) => frames,
        Err(error) => return Err(about(client, id, error).await),
    };
    while let Some(frame) = frames.next().await? {
        match frame.event.as_str() {
            "log" => print(output, &serde_json::from_str(&frame.data)?)?,
            // The task has ended; `show` says more about how.
            "end" => return Ok(()),
            _ => {}
        }
    }
    Err(Failure::new(Exit::Unavailable, "the server ended the stream before the task had ended")
        .hint("It may have been stopped. Try again in a moment; the log is kept."))
}

fn print(output: Output, line: &LogBody) -> Result {
    match output.is_json() {
        true => Ok(output.json(line)?),
        false => Ok(output.line(shown(output.paint, line))?),
    }
}

/// A line for people. Errors are marked by a sign, for those who see no colours and those who search a file.
fn shown(paint: Paint, line: &LogBody) -> String {
    let (time, message) = (paint.dim(clock(&line.time)), clean(&line.message));
    match line.level {
        Level::Info => format!("{time}   {message}"),
        Level::Error => format!("{time} {} {}", paint.bad("!"), paint.bad(&message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Color;

    #[test]
    fn errors_are_marked_without_colours_and_messages_stay_in_line() {
        let line = |level| LogBody { time: "2016-11-04T11:07:35.827000Z".into(), message: "m".into(), level };
        let paint = Paint::new(Color::Never);
        assert_eq!(shown(paint, &line(Level::Info)), "11:07:35.827   m");
        assert_eq!(shown(paint, &line(Level::Error)), "11:07:35.827 ! m");
    }
}

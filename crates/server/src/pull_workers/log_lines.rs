//! Log lines as workers write them: a text, or an object with a message, a level and a time.

use pointsman_core::Timestamp;
use pointsman_core::event_json_parser::{JsonError, parse_json_object, parse_member, parse_string};
use pointsman_core::task::{LogLevel, LogLine};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum number of lines in a request. An attempt cannot log more in total.
const MAX_LINES_PER_REQUEST: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a string, or an object with a message")]
struct LogLineJson {
    message: Option<Box<RawValue>>,
    level: Option<Box<RawValue>>,
    time: Option<Box<RawValue>>,
}

/// Parses the log lines at a JSON pointer; lines without a time get `now`.
pub(super) fn parse_log_lines(at: &str, raw: &RawValue, now: Timestamp) -> Result<Vec<LogLine>, JsonError> {
    let list: Vec<Box<RawValue>> = parse_member(at, raw, "a list of log lines")?;
    if list.len() > MAX_LINES_PER_REQUEST {
        return Err(JsonError::new(
            at,
            format!("at most {MAX_LINES_PER_REQUEST} lines at a time, these are {}", list.len()),
        ));
    }
    let each = list.iter().enumerate();
    each.map(|(index, raw)| {
        parse_log_line(raw, now).map_err(|fault| fault.with_pointer_prefix(format!("{at}/{index}")))
    })
    .collect()
}

fn parse_log_line(raw: &RawValue, now: Timestamp) -> Result<LogLine, JsonError> {
    if raw.get().starts_with('"') {
        return Ok(LogLine { time: now, level: LogLevel::Info, message: parse_string("", raw)? });
    }
    let members: LogLineJson = parse_json_object(raw.get())?;
    let message = members.message.ok_or_else(|| JsonError::new("/message", "a log line has a message"))?;
    let level = members.level.map(|raw| parse_member("/level", &raw, "`info` or `error`")).transpose()?;
    let time = members
        .time
        .map(|raw| parse_member("/time", &raw, "a time like 2026-01-31T12:00:00Z"))
        .transpose()?;
    Ok(LogLine {
        time: time.unwrap_or(now),
        level: level.unwrap_or(LogLevel::Info),
        message: parse_string("/message", &message)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn parse_lines(text: &str) -> Result<Vec<LogLine>, JsonError> {
        parse_log_lines("/logs", serde_json::from_str(text).unwrap(), NOW)
    }

    #[test]
    fn log_lines_are_strings_or_objects() {
        let full = r#"["a", {"message":"b","level":"error","time":"1970-01-01T00:00:01Z"}, {"message":"a"}]"#;
        let line = |time, level, message: &str| LogLine { time, level, message: message.into() };
        assert_eq!(
            parse_lines(full).unwrap(),
            [
                line(NOW, LogLevel::Info, "a"),
                line(Timestamp::from_millis(1000), LogLevel::Error, "b"),
                line(NOW, LogLevel::Info, "a"),
            ]
        );
    }

    #[test]
    fn faults_point_at_the_log_line() {
        for (text, pointer) in [
            ("{}", "/logs"),
            (r#"["a", 1]"#, "/logs/1"),
            (r#"[{}]"#, "/logs/0/message"),
            (r#"[{"message":"a","level":"loud"}]"#, "/logs/0/level"),
            (r#"[{"message":"a","time":"now"}]"#, "/logs/0/time"),
            (r#"[{"message":"a","colour":1}]"#, "/logs/0/colour"),
        ] {
            assert_eq!(parse_lines(text).unwrap_err().pointer, pointer, "{text}");
        }
    }
}

//! Effects of handlers outside this process: the JSON reply of an HTTP handler, and the effects file of a command.
//!
//! ```json
//! {"emit": [{"type": "record.indexed", "key": "record:1"}],
//!  "log": ["plain", {"message": "text", "level": "error", "time": "2026-01-31T12:00:00Z"}],
//!  "result": {"pages": 3}, "snooze": "5m", "retry": false}
//! ```
//!
//! A reply is one such object; an effects file has one on each line, which are merged. Everything is checked before
//! anything is applied: after one fault nothing is applied, and the attempt fails without a retry, because a retry
//! would return the same.

use std::time::Duration;

use pointsman_core::event_json_parser::{self, JsonError, RawEmitBody};
use pointsman_core::store::AttemptResult;
use pointsman_core::task::{LogLevel, LogLine};
use pointsman_core::{Json, NewEvent, Tenant, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::HandlerOutcome;
use crate::attempt_ending::MIN_SNOOZE;

/// The maximum number of events that one attempt emits.
const MAX_EMITTED_EVENTS: usize = 1000;
/// The maximum size of a reply or an effects file: enough for a step's result and other effects.
pub(super) const MAX_EFFECTS_BYTES: usize = 4 << 20;

/// The effects of a handler, which have been checked.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Effects {
    emitted_events: Vec<NewEvent>,
    log_lines: Vec<LogLine>,
    result: Option<Json>,
    snooze: Option<Duration>,
    /// The handler returned `"retry": false`: if the attempt fails, it is not retried.
    pub(super) no_retry: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object of effects")]
struct EffectsMembers {
    emit: Option<Box<RawValue>>,
    log: Option<Box<RawValue>>,
    retry: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    snooze: Option<Box<RawValue>>,
}

/// Parses an effects file. An error names the line.
pub(super) fn parse_effects_file(text: &str, tenant: &Tenant, now: Timestamp) -> Result<Effects, JsonError> {
    let mut effects = Effects::default();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        effects
            .add_json(line, tenant, now)
            .map_err(|fault| JsonError::new("", format!("line {}: {fault}", index + 1)))?;
    }
    Ok(effects)
}

impl Effects {
    /// Effects that consist of one error line in the log.
    pub(super) fn with_error_line(message: String, now: Timestamp) -> Self {
        Self { log_lines: vec![LogLine { time: now, level: LogLevel::Error, message }], ..Self::default() }
    }

    /// Parses a JSON object and adds its members to the effects.
    pub(super) fn add_json(&mut self, text: &str, tenant: &Tenant, now: Timestamp) -> Result<(), JsonError> {
        let members: EffectsMembers = event_json_parser::parse_json_object(text)?;
        for (index, raw) in parse_json_list("/emit", members.emit)?.iter().enumerate() {
            if self.emitted_events.len() == MAX_EMITTED_EVENTS {
                return Err(JsonError::new(
                    "/emit",
                    format!("an attempt emits at most {MAX_EMITTED_EVENTS} events"),
                ));
            }
            self.emitted_events.push(
                parse_emitted_event(raw, tenant, now)
                    .map_err(|fault| fault.with_pointer_prefix(format!("/emit/{index}")))?,
            );
        }
        for (index, raw) in parse_json_list("/log", members.log)?.iter().enumerate() {
            self.log_lines.push(
                parse_log_line(raw, now)
                    .map_err(|fault| fault.with_pointer_prefix(format!("/log/{index}")))?,
            );
        }
        if let Some(raw) = members.retry {
            self.no_retry |= !event_json_parser::parse_member::<bool>("/retry", &raw, "true or false")?;
        }
        if let Some(raw) = members.result {
            self.result = Some(Json::parse(raw.get()).map_err(|e| JsonError::new("/result", e))?);
        }
        if let Some(raw) = members.snooze {
            self.snooze = Some(event_json_parser::parse_duration("/snooze", &raw)?);
        }
        match self {
            Self { result: Some(_), snooze: Some(_), .. } => {
                Err(JsonError::new("/snooze", "a snoozed task has no result yet: use `snooze` or `result`"))
            }
            _ => Ok(()),
        }
    }

    /// The outcome of a successful attempt: done, or snoozed if the effects say so.
    pub(super) fn into_outcome(self, now: Timestamp) -> HandlerOutcome {
        let result = match self.snooze {
            Some(snooze) => AttemptResult::Snoozed { until: now.plus(snooze.max(MIN_SNOOZE)) },
            None => AttemptResult::Succeeded { result: self.result },
        };
        HandlerOutcome {
            result,
            target_health: None,
            emitted_events: self.emitted_events,
            log_lines: self.log_lines,
        }
    }

    /// The outcome of an attempt that snoozed, for `default` if the effects give no duration.
    pub(super) fn into_snoozed_outcome(
        self,
        default: Duration,
        now: Timestamp,
    ) -> Result<HandlerOutcome, JsonError> {
        if self.result.is_some() {
            return Err(JsonError::new("/result", "a snooze does not end the task, so it has no result"));
        }
        let snooze = Some(self.snooze.unwrap_or(default));
        Ok(Self { snooze, ..self }.into_outcome(now))
    }
}

/// The outcome of an attempt whose effects were refused.
pub(super) fn invalid_effects_outcome(fault: &JsonError) -> HandlerOutcome {
    let result = AttemptResult::Failed {
        error: format!("the handler's effects are invalid and were not applied: {fault}"),
        return_code: 1,
        retry_at: None,
        permanent: true,
    };
    HandlerOutcome { result, ..HandlerOutcome::succeeded() }
}

/// The outcome of an attempt that failed with this return code, with the log lines and the `retry` member of its
/// effects.
///
/// A handler that crashed may have written half a line. Then only its failure counts, and a retry may fix both, so
/// invalid effects are only logged.
pub(super) fn failure_outcome(
    return_code: i64,
    error: String,
    effects: Result<Effects, JsonError>,
    now: Timestamp,
) -> HandlerOutcome {
    let Effects { log_lines, no_retry, .. } = effects.unwrap_or_else(|fault| {
        Effects::with_error_line(format!("the handler's effects are invalid and were ignored: {fault}"), now)
    });
    HandlerOutcome {
        result: AttemptResult::Failed { error, return_code, retry_at: None, permanent: no_retry },
        log_lines,
        ..HandlerOutcome::succeeded()
    }
}

/// Parses an emitted event. A handler may emit only for the tenant of its task.
fn parse_emitted_event(raw: &RawValue, tenant: &Tenant, now: Timestamp) -> Result<NewEvent, JsonError> {
    let event = RawEmitBody::parse(raw.get())?.into_new_event(now, tenant)?;
    if event.tenant != *tenant {
        return Err(JsonError::new(
            "/tenant",
            format!("a task of tenant {tenant} may emit only for that tenant"),
        ));
    }
    Ok(event)
}

fn parse_json_list(pointer: &str, raw: Option<Box<RawValue>>) -> Result<Vec<Box<RawValue>>, JsonError> {
    let Some(raw) = raw else { return Ok(vec![]) };
    serde_json::from_str(raw.get()).map_err(|_| JsonError::new(pointer, "this is not a list"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a string, or an object with a message")]
struct LogLineMembers {
    message: Option<Box<RawValue>>,
    level: Option<Box<RawValue>>,
    time: Option<Box<RawValue>>,
}

fn parse_log_line(raw: &RawValue, now: Timestamp) -> Result<LogLine, JsonError> {
    if raw.get().starts_with('"') {
        return Ok(LogLine {
            time: now,
            level: LogLevel::Info,
            message: event_json_parser::parse_string("", raw)?,
        });
    }
    let members: LogLineMembers = event_json_parser::parse_json_object(raw.get())?;
    let message = members.message.ok_or_else(|| JsonError::new("/message", "a log line has a message"))?;
    let level = members
        .level
        .map(|raw| event_json_parser::parse_member("/level", &raw, "`info` or `error`"))
        .transpose()?;
    let time = members
        .time
        .map(|raw| event_json_parser::parse_member("/time", &raw, "a time like 2026-01-31T12:00:00Z"))
        .transpose()?;
    Ok(LogLine {
        time: time.unwrap_or(now),
        level: level.unwrap_or(LogLevel::Info),
        message: event_json_parser::parse_string("/message", &message)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn shop_tenant() -> Tenant {
        Tenant::new("shop").unwrap()
    }

    fn parse_effects_lines(text: &str) -> Result<Effects, String> {
        parse_effects_file(text, &shop_tenant(), NOW).map_err(|fault| fault.to_string())
    }

    #[test]
    fn lines_of_an_effects_file_are_merged() {
        let effects = parse_effects_lines(
            "{\"emit\":[{\"type\":\"a\",\"delay\":60}]}\n\n{\"emit\":[{\"type\":\"b\"}],\"log\":[\"x\"]}\r\n{\"result\":[1.50]}",
        )
        .unwrap();
        let outcome = effects.into_outcome(NOW);
        let kinds: Vec<_> = outcome.emitted_events.iter().map(|e| e.event_type.as_str()).collect();
        assert_eq!(kinds, ["a", "b"]);
        assert_eq!(outcome.emitted_events[0].due, Some(Timestamp::from_millis(1_060_000)));
        assert_eq!(outcome.emitted_events[1].tenant.as_str(), "shop");
        assert_eq!(outcome.log_lines[0].message, "x");
        assert_eq!(outcome.result, AttemptResult::Succeeded { result: Some(Json::parse("[1.50]").unwrap()) });
    }

    #[test]
    fn log_lines_are_strings_or_objects() {
        let effects = parse_effects_lines(
            r#"{"log":["a",{"message":"b","level":"error","time":"1970-01-01T00:00:01Z"}]}"#,
        )
        .unwrap();
        let line = |time, level, message: &str| LogLine { time, level, message: message.into() };
        let expected =
            vec![line(NOW, LogLevel::Info, "a"), line(Timestamp::from_millis(1000), LogLevel::Error, "b")];
        assert_eq!(effects.log_lines, expected);
    }

    #[test]
    fn a_snooze_sets_when_the_task_runs_again() {
        let snooze_seconds = |text: &str| match parse_effects_lines(text)
            .unwrap()
            .into_snoozed_outcome(Duration::from_secs(300), NOW)
            .unwrap()
            .result
        {
            AttemptResult::Snoozed { until } => until.duration_since(NOW).as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!(snooze_seconds(""), 300);
        assert_eq!(snooze_seconds(r#"{"snooze":"1m"}"#), 60);
        let ended = parse_effects_lines(r#"{"snooze":2}"#).unwrap().into_outcome(NOW).result;
        assert_eq!(ended, AttemptResult::Snoozed { until: NOW.plus(Duration::from_secs(2)) });
        assert_eq!(
            snooze_seconds(r#"{"snooze":"0s"}"#),
            1,
            "a snooze has a minimum, or it would be a tight loop"
        );
        assert!(
            parse_effects_lines(r#"{"result":1}"#)
                .unwrap()
                .into_snoozed_outcome(Duration::ZERO, NOW)
                .is_err()
        );
    }

    #[test]
    fn faults_name_the_member_and_the_line() {
        let deep = format!(r#"{{"result":{}{}}}"#, "[".repeat(101), "]".repeat(101));
        let many = format!(r#"{{"emit":[{}]}}"#, vec![r#"{"type":"a"}"#; MAX_EMITTED_EVENTS + 1].join(","));
        for (text, expected) in [
            ("{}\n{\"emti\":[]}", "line 2: /emti: unknown field `emti`"),
            ("nonsense", "line 1: "),
            (r#"{"emit":{}}"#, "/emit: this is not a list"),
            (r#"{"emit":[{"type":"a"},{"type":"a","colour":1}]}"#, "/emit/1/colour: unknown field `colour`"),
            (r#"{"emit":[{"type":"a b"}]}"#, "/emit/0/type: "),
            (r#"{"emit":[{"type":"TaskEnded"}]}"#, "/emit/0/type: only the engine"),
            (r#"{"emit":[{"type":"a","tenant":"other"}]}"#, "/emit/0/tenant: "),
            (r#"{"log":[{"level":"error"}]}"#, "/log/0/message: "),
            (r#"{"log":[{"message":"x","level":"loud"}]}"#, "/log/0/level: "),
            (r#"{"log":["\u0000"]}"#, "/log/0: "),
            (r#"{"log":[1]}"#, "/log/0: "),
            (r#"{"retry":"no"}"#, "/retry: "),
            (r#"{"snooze":"soon"}"#, "/snooze: "),
            (r#"{"snooze":1,"result":1}"#, "/snooze: "),
            (&deep, "/result: "),
            (&many, "/emit: an attempt emits at most 1000"),
        ] {
            let fault = parse_effects_lines(text).expect_err(&format!("{text:.60}"));
            assert!(fault.contains(expected), "{fault}");
        }
    }
}

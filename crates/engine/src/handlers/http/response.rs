//! The response of a target, and the outcome of the attempt that follows from it.

use std::time::Duration;

use pointsman_core::event_json_parser::JsonError;
use pointsman_core::limit::TargetHealth;
use pointsman_core::store::AttemptResult;
use pointsman_core::task::LogLevel;
use pointsman_core::{Tenant, Timestamp};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use super::super::clean_text::excerpt_for_error;
use super::super::effects::{self, Effects, MAX_EFFECTS_BYTES};
use super::reply::{ReplyKind, parse_reply};
use crate::HandlerOutcome;
use crate::attempt_ending::MIN_SNOOZE;

/// The longest wait that a target may request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The response of a target, with as much of its body as is used.
pub(super) struct TargetResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    /// Whether the body was longer than the maximum that is read.
    is_body_truncated: bool,
}

impl TargetResponse {
    pub(super) async fn read(mut response: Response) -> reqwest::Result<Self> {
        let (mut body, mut is_truncated) = (Vec::new(), false);
        while let Some(chunk) = response.chunk().await? {
            let remaining = MAX_EFFECTS_BYTES - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(remaining)]);
            if chunk.len() > remaining {
                is_truncated = true;
                break;
            }
        }
        Ok(Self {
            status: response.status(),
            headers: response.headers().clone(),
            body,
            is_body_truncated: is_truncated,
        })
    }

    pub(super) fn log_level(&self) -> LogLevel {
        if self.status.is_success() { LogLevel::Info } else { LogLevel::Error }
    }

    /// The status of the response and an excerpt of its body, as a line of the task's log.
    pub(super) fn to_log_line(&self) -> String {
        match excerpt_for_error(&self.body) {
            text if text.is_empty() => format!("HTTP {}", self.status),
            text => format!("HTTP {}: {text}", self.status),
        }
    }

    /// The outcome of the attempt that follows from the response; `tenant` is that of the task.
    pub(super) fn to_outcome(&self, tenant: &Tenant, now: Timestamp) -> HandlerOutcome {
        HandlerOutcome {
            target_health: Some(self.target_health(now)),
            ..self.outcome_without_health(tenant, now)
        }
    }

    fn outcome_without_health(&self, tenant: &Tenant, now: Timestamp) -> HandlerOutcome {
        if self.status.is_success() {
            return match self.parse_effects(tenant, now) {
                Ok(effects) => effects.into_outcome(now),
                Err(fault) => effects::invalid_effects_outcome(&fault),
            };
        }
        let mut outcome = effects::failure_outcome(
            self.status.as_u16().into(),
            self.error_message(),
            self.parse_effects(tenant, now),
            now,
        );
        if let AttemptResult::Failed { permanent, .. } = &mut outcome.result {
            *permanent |= self.status == StatusCode::GONE;
            if let (false, Some(until)) = (*permanent, self.requested_retry_time(now)) {
                outcome.result = AttemptResult::Snoozed { until };
            }
        }
        outcome
    }

    /// The health of the target.
    fn target_health(&self, now: Timestamp) -> TargetHealth {
        match (self.status, self.requested_retry_time(now)) {
            (_, Some(until)) => TargetHealth::Busy { until },
            (StatusCode::TOO_MANY_REQUESTS, None) => TargetHealth::Busy { until: now.plus(MIN_SNOOZE) },
            (status, None) if status.is_server_error() => TargetHealth::Failing,
            (_, None) => TargetHealth::Healthy,
        }
    }

    fn error_message(&self) -> String {
        match self.status {
            StatusCode::GONE => "the target is gone (HTTP 410); not retrying".into(),
            status if status.is_redirection() => format!("HTTP {status}: redirects are not followed"),
            _ => self.to_log_line(),
        }
    }

    /// The time until which a busy target asks to wait; `None` if it is not busy or names no time.
    fn requested_retry_time(&self, now: Timestamp) -> Option<Timestamp> {
        let is_busy = matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let header = self.headers.get(RETRY_AFTER).filter(|_| is_busy)?.to_str().ok()?;
        parse_retry_after(header.trim(), now)
            .map(|until| until.clamp(now.plus(MIN_SNOOZE), now.plus(MAX_RETRY_AFTER)))
    }

    fn parse_effects(&self, tenant: &Tenant, now: Timestamp) -> Result<Effects, JsonError> {
        if !self.is_json() || !self.body.trim_ascii_start().starts_with(b"{") {
            return Ok(Effects::default());
        }
        if self.is_body_truncated {
            // The rest of the body was not read, and ignoring it could lose events.
            return Err(JsonError::new("", format!("the reply has more than {MAX_EFFECTS_BYTES} bytes")));
        }
        let text =
            std::str::from_utf8(&self.body).map_err(|_| JsonError::new("", "the reply is not UTF-8"))?;
        Ok(match parse_reply(text, tenant, now)? {
            ReplyKind::Effects(effects) => effects,
            ReplyKind::WithoutEffects => Effects::default(),
            ReplyKind::Ambiguous(member) => Effects::with_error_line(
                format!("the reply was not used as effects, because it has the unknown member {member:?}"),
                now,
            ),
        })
    }

    fn is_json(&self) -> bool {
        let content_type =
            self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        media_type == "application/json"
            || (media_type.starts_with("application/") && media_type.ends_with("+json"))
    }
}

/// Parses a `Retry-After` header: seconds, or an HTTP date. Anything else is ignored.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<Timestamp> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(now.plus(Duration::from_secs(text.parse().unwrap_or(u64::MAX))));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Timestamp::from_micros(date.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "1994-11-06T08:49:00Z".parse().unwrap();
        let wait_seconds =
            |text| parse_retry_after(text, now).map(|until| until.duration_since(now).as_secs());
        assert_eq!(wait_seconds("120"), Some(120));
        assert_eq!(wait_seconds("0"), Some(0));
        assert_eq!(wait_seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(37));
        assert!(wait_seconds("99999999999999999999999").is_some());
        for bad in ["", "-1", "1.5", "soon", "+3"] {
            assert_eq!(wait_seconds(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn retry_after_counts_only_for_busy_targets_and_at_most_a_day() {
        let now = Timestamp::from_millis(1_000_000);
        let wait_seconds = |status: u16, text: &'static str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            let status = StatusCode::from_u16(status).unwrap();
            TargetResponse { status, headers, body: vec![], is_body_truncated: false }
                .requested_retry_time(now)
                .map(|until| until.duration_since(now).as_secs())
        };
        assert_eq!(wait_seconds(429, "60"), Some(60));
        assert_eq!(wait_seconds(503, "999999999"), Some(86_400));
        assert_eq!(wait_seconds(503, "Thu, 01 Jan 1970 00:00:00 GMT"), Some(1));
        assert_eq!(
            wait_seconds(429, "0"),
            Some(1),
            "otherwise the task would run again at once, without end"
        );
        assert_eq!(wait_seconds(500, "60"), None);
    }
}

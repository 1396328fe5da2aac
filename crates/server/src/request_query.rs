//! Strict parsing of query parameters: an unknown or repeated parameter is an error that names it.

use std::fmt::Display;
use std::str::FromStr;

use http::Uri;
use pointsman_core::Timestamp;

use crate::percent_decoding;
use crate::problem::Problem;

/// The query parameters of a request, decoded.
#[derive(Debug)]
pub(crate) struct RequestQuery(Vec<(String, String)>);

impl RequestQuery {
    /// Parses the query of a URI, whose parameters must all be among `allowed`.
    pub(crate) fn from_uri(uri: &Uri, allowed: &[&str]) -> Result<Self, Problem> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode_form(name)?;
            let problem = if !allowed.contains(&name.as_str()) {
                let allowed = if allowed.is_empty() { "none".into() } else { allowed.join(", ") };
                Problem::malformed(format!("there is no such parameter; this call takes: {allowed}"))
            } else if pairs.iter().any(|(given, _)| *given == name) {
                Problem::malformed("the parameter is given twice")
            } else {
                let value = decode_form(value).map_err(|problem| problem.with_parameter(name.as_str()))?;
                pairs.push((name, value));
                continue;
            };
            return Err(problem.with_parameter(name));
        }
        Ok(Self(pairs))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Parses a parameter with its `FromStr`.
    pub(crate) fn parse_parameter<T: FromStr>(&self, name: &str) -> Result<Option<T>, Problem>
    where
        T::Err: Display,
    {
        self.parse_parameter_with(name, T::from_str)
    }

    /// Parses a parameter with `parse`.
    pub(crate) fn parse_parameter_with<T, E: Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Problem> {
        self.get(name).map(parse).transpose().map_err(|e| Problem::malformed(e).with_parameter(name))
    }
}

/// A period from `start` (inclusive) to `end` (exclusive).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Period {
    pub(crate) start: Option<Timestamp>,
    pub(crate) end: Option<Timestamp>,
}

impl RequestQuery {
    /// Parses the period of the parameters `start` and `end`.
    pub(crate) fn parse_period(&self) -> Result<Period, Problem> {
        let (start, end) = (self.parse_parameter("start")?, self.parse_parameter("end")?);
        match (start, end) {
            (Some(from), Some(to)) if to < from => {
                Err(Problem::malformed("the period ends before it starts").with_parameter("end"))
            }
            _ => Ok(Period { start, end }),
        }
    }

    /// Unwraps a required parameter; 400 if it is missing.
    pub(crate) fn require_parameter<T>(&self, name: &str, value: Option<T>) -> Result<T, Problem> {
        value.ok_or_else(|| {
            Problem::malformed(format!("this call needs the parameter `{name}`")).with_parameter(name)
        })
    }

    /// Parses the parameter `limit`: a whole number from 1 to `max`.
    pub(crate) fn parse_limit(&self, default: usize, max: usize) -> Result<usize, Problem> {
        let limit = self.parse_parameter_with("limit", |text| {
            let number = text.parse().ok().filter(|n| (1..=max).contains(n) && !text.starts_with('+'));
            number.ok_or_else(|| format!("a limit is a whole number from 1 to {max}"))
        });
        Ok(limit?.unwrap_or(default))
    }
}

/// Decodes a form-encoded text, in which `+` is a blank.
fn decode_form(text: &str) -> Result<String, Problem> {
    percent_decoding::decode_percent_encoded(&text.replace('+', " "))
        .ok_or_else(|| Problem::malformed("the query is not percent-encoded UTF-8"))
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    fn parse_query(text: &str) -> Result<RequestQuery, Problem> {
        RequestQuery::from_uri(&format!("/x?{text}").parse().unwrap(), &["a", "b c", "after"])
    }

    #[test]
    fn parameter_names_and_values_are_decoded() {
        let query = parse_query("a=1%2B1+2&b%20c=%C3%A4&&").unwrap();
        assert_eq!(query.get("a"), Some("1+1 2"));
        assert_eq!(query.get("b c"), Some("ä"));
        assert_eq!(query.get("after"), None);
    }

    #[test]
    fn limits_are_whole_numbers_within_bounds() {
        let limit =
            |text: &str| RequestQuery::from_uri(&format!("/x?limit={text}").parse().unwrap(), &["limit"]);
        assert_eq!(limit("1000").unwrap().parse_limit(5, 1000).unwrap(), 1000);
        for bad in ["0", "1001", "-1", "%2B5", "x", ""] {
            assert!(limit(bad).unwrap().parse_limit(5, 1000).is_err(), "{bad:?}");
        }
        assert_eq!(parse_query("").unwrap().parse_limit(5, 1000).unwrap(), 5);
    }

    #[test]
    fn a_period_does_not_end_before_it_starts() {
        let period = |start: &str, end: &str| {
            let address = format!("/x?start={start}&end={end}");
            RequestQuery::from_uri(&address.parse().unwrap(), &["start", "end"]).unwrap().parse_period()
        };
        assert!(period("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z").is_ok());
        for (start, end) in
            [("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"), ("now", "2026-01-01T00:00:00Z"), ("", "")]
        {
            assert!(period(start, end).is_err(), "{start} {end}");
        }
    }

    #[test]
    fn unknown_duplicate_and_malformed_parameters_are_rejected() {
        for bad in ["x=1", "a=1&a=1", "a=%ff", "a=%zz", "a=%2", "%ff=1"] {
            assert_eq!(parse_query(bad).unwrap_err().into_response().status(), 400, "{bad}");
        }
        assert!(parse_query("after=x").unwrap().parse_parameter::<u64>("after").is_err());
    }
}

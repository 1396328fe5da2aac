//! Query parameters, strictly: what is not known, or comes twice, is refused by name.

use std::fmt::Display;
use std::str::FromStr;

use http::Uri;

use crate::percent;
use crate::problem::Problem;

#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// The parameters of an address, all of which must be among `known`.
    pub(crate) fn of(uri: &Uri, known: &[&str]) -> Result<Self, Problem> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name)?;
            let problem = if !known.contains(&name.as_str()) {
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                Problem::malformed(format!("there is no such parameter; this call takes: {known}"))
            } else if pairs.iter().any(|(seen, _)| *seen == name) {
                Problem::malformed("the parameter is given twice")
            } else {
                let value = decode(value).map_err(|problem| problem.parameter(name.as_str()))?;
                pairs.push((name, value));
                continue;
            };
            return Err(problem.parameter(name));
        }
        Ok(Self(pairs))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter's value in its own type.
    pub(crate) fn parse<T: FromStr>(&self, name: &str) -> Result<Option<T>, Problem>
    where
        T::Err: Display,
    {
        self.read(name, T::from_str)
    }

    /// A parameter's value, read by `read`.
    pub(crate) fn read<T, E: Display>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Problem> {
        self.get(name).map(read).transpose().map_err(|e| Problem::malformed(e).parameter(name))
    }
}

/// As forms write it: `+` is a blank.
fn decode(text: &str) -> Result<String, Problem> {
    percent::decode(&text.replace('+', " "))
        .ok_or_else(|| Problem::malformed("the query is not percent-encoded UTF-8"))
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    fn query(text: &str) -> Result<Query, Problem> {
        Query::of(&format!("/x?{text}").parse().unwrap(), &["a", "b c", "after"])
    }

    #[test]
    fn names_and_values_are_decoded() {
        let query = query("a=1%2B1+2&b%20c=%C3%A4&&").unwrap();
        assert_eq!(query.get("a"), Some("1+1 2"));
        assert_eq!(query.get("b c"), Some("ä"));
        assert_eq!(query.get("after"), None);
    }

    #[test]
    fn what_is_unknown_or_doubled_or_garbled_is_refused() {
        for bad in ["x=1", "a=1&a=1", "a=%ff", "a=%zz", "a=%2", "%ff=1"] {
            assert_eq!(query(bad).unwrap_err().into_response().status(), 400, "{bad}");
        }
        assert!(query("after=x").unwrap().parse::<u64>("after").is_err());
    }
}

//! What a reader of the journal wants to see.

use http::Uri;
use pointsman_core::journal::Filter;
use pointsman_core::{EventId, HandlingKey};

use crate::auth::Caller;
use crate::problem::Problem;
use crate::query::Query;

/// A filter and where to begin.
#[derive(Clone, Debug)]
pub(crate) struct EventQuery {
    pub(crate) filter: Filter,
    pub(crate) after: Option<EventId>,
    /// Types were named, and the root of all types was not among them.
    pub(crate) names_types: bool,
}

impl EventQuery {
    /// The parameters that a watch is made of.
    pub(crate) const PARAMETERS: [&str; 5] = ["return", "after", "path", "key", "tenant"];

    /// The watch that a query asks for, as far as the caller may see.
    pub(crate) fn from_query(query: &Query, caller: &Caller) -> Result<Self, Problem> {
        let types = query.parse_with("return", parse_types)?.unwrap_or_default();
        let filter = Filter {
            path: query.parse("path")?.unwrap_or_default(),
            key: query.parse("key")?,
            tenant: caller.tenant(query.parse("tenant")?)?,
            kinds: types,
            engine: false,
        };
        let names_types = !filter.kinds.is_empty();
        Ok(Self { filter, after: query.parse("after")?, names_types })
    }

    /// The watch of a request that takes these parameters and some more.
    pub(crate) fn parse_query(uri: &Uri, more: &[&'static str]) -> Result<Query, Problem> {
        Query::from_uri(uri, &[&Self::PARAMETERS, more].concat())
    }
}

/// Types, separated by commas. One that stands above all is as good as none.
fn parse_types(text: &str) -> Result<Vec<HandlingKey>, pointsman_core::names::BadName> {
    let types: Vec<HandlingKey> = text.split(',').map(HandlingKey::new).collect::<Result<_, _>>()?;
    let everything = types.iter().any(|kind| kind.as_str() == "Event");
    Ok(if everything { vec![] } else { types })
}

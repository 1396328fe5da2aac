//! The filter and cursor of a request that reads the journal.

use http::Uri;
use pointsman_core::journal::EventFilter;
use pointsman_core::{EventId, HandlingKey};

use crate::auth::Caller;
use crate::problem::Problem;
use crate::query::Query;

/// Which events a request selects: a filter and a cursor.
#[derive(Clone, Debug)]
pub(crate) struct EventQuery {
    pub(crate) filter: EventFilter,
    pub(crate) after: Option<EventId>,
    /// The query names types, and the root type `Event` is not among them.
    pub(crate) has_type_filter: bool,
}

impl EventQuery {
    /// The query parameters of the filter and cursor.
    pub(crate) const PARAMETERS: [&str; 5] = ["return", "after", "path", "key", "tenant"];

    /// Parses the filter and cursor, restricted to what the caller may see.
    pub(crate) fn from_query(query: &Query, caller: &Caller) -> Result<Self, Problem> {
        let types = query.parse_parameter_with("return", parse_types)?.unwrap_or_default();
        let filter = EventFilter {
            path: query.parse_parameter("path")?.unwrap_or_default(),
            key: query.parse_parameter("key")?,
            tenant: caller.resolve_tenant(query.parse_parameter("tenant")?)?,
            kinds: types,
            engine_only: false,
        };
        let names_types = !filter.kinds.is_empty();
        Ok(Self { filter, after: query.parse_parameter("after")?, has_type_filter: names_types })
    }

    /// Parses the query of a request that takes these parameters and `more`.
    pub(crate) fn query_from_uri(uri: &Uri, more: &[&'static str]) -> Result<Query, Problem> {
        Query::from_uri(uri, &[&Self::PARAMETERS, more].concat())
    }
}

/// Parses types separated by commas. The root type `Event` selects all, as no type does.
fn parse_types(text: &str) -> Result<Vec<HandlingKey>, pointsman_core::names::BadName> {
    let types: Vec<HandlingKey> = text.split(',').map(HandlingKey::new).collect::<Result<_, _>>()?;
    let everything = types.iter().any(|kind| kind.as_str() == "Event");
    Ok(if everything { vec![] } else { types })
}

//! The filter and cursor of a request that reads the journal.

use http::Uri;
use pointsman_core::journal::EventFilter;
use pointsman_core::{EventId, EventType};

use crate::auth::Caller;
use crate::problem::Problem;
use crate::request_query::RequestQuery;

/// Which events a request selects: a filter and a cursor.
#[derive(Clone, Debug)]
pub(crate) struct EventQuery {
    pub(crate) filter: EventFilter,
    pub(crate) after: Option<EventId>,
    /// Whether the query names types, without the root type `Event`.
    pub(crate) has_type_filter: bool,
}

impl EventQuery {
    /// The query parameters of the filter and cursor.
    pub(crate) const PARAMETERS: [&str; 5] = ["return", "after", "path", "key", "tenant"];

    /// Parses the filter and cursor, restricted to what the caller may see.
    pub(crate) fn from_query(query: &RequestQuery, caller: &Caller) -> Result<Self, Problem> {
        let event_types = query.parse_parameter_with("return", parse_event_types)?.unwrap_or_default();
        let filter = EventFilter {
            path: query.parse_parameter("path")?.unwrap_or_default(),
            key: query.parse_parameter("key")?,
            tenant: caller.resolve_requested_tenant(query.parse_parameter("tenant")?)?,
            event_types,
            engine_events_only: false,
        };
        let names_types = !filter.event_types.is_empty();
        Ok(Self { filter, after: query.parse_parameter("after")?, has_type_filter: names_types })
    }

    /// Parses the query of a request that takes these parameters and `extra_parameters`.
    pub(crate) fn query_from_uri(
        uri: &Uri,
        extra_parameters: &[&'static str],
    ) -> Result<RequestQuery, Problem> {
        RequestQuery::from_uri(uri, &[&Self::PARAMETERS, extra_parameters].concat())
    }
}

/// Parses types separated by commas. The root type `Event` selects all, as no type does.
fn parse_event_types(text: &str) -> Result<Vec<EventType>, pointsman_core::names::BadName> {
    let types: Vec<EventType> = text.split(',').map(EventType::new).collect::<Result<_, _>>()?;
    let has_root_type = types.iter().any(|event_type| event_type.as_str() == "Event");
    Ok(if has_root_type { vec![] } else { types })
}

//! What a reader of the journal wants to see.

use http::Uri;
use pointsman_core::journal::Filter;
use pointsman_core::{EventId, HandlingKey};

use crate::auth::Caller;
use crate::problem::Problem;
use crate::query::Query;

/// A filter and where to begin.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) filter: Filter,
    pub(crate) after: Option<EventId>,
    /// Types were named, and the root of all types was not among them.
    pub(crate) certain_types: bool,
}

impl Watch {
    /// The parameters that a watch is made of.
    pub(crate) const PARAMETERS: [&str; 5] = ["return", "after", "path", "key", "tenant"];

    /// The watch that a query asks for, as far as the caller may see.
    pub(crate) fn of(query: &Query, caller: &Caller) -> Result<Self, Problem> {
        let kinds = query.read("return", kinds)?.unwrap_or_default();
        let filter = Filter {
            path: query.parse("path")?.unwrap_or_default(),
            key: query.parse("key")?,
            tenant: caller.tenant(query.parse("tenant")?)?,
            kinds,
            engine: false,
        };
        let certain_types = !filter.kinds.is_empty();
        Ok(Self { filter, after: query.parse("after")?, certain_types })
    }

    /// The watch of a request that takes these parameters and some more.
    pub(crate) fn query(uri: &Uri, more: &[&'static str]) -> Result<Query, Problem> {
        Query::of(uri, &[&Self::PARAMETERS, more].concat())
    }
}

/// Types, separated by commas. One that stands above all is as good as none.
fn kinds(text: &str) -> Result<Vec<HandlingKey>, pointsman_core::names::BadName> {
    let kinds: Vec<HandlingKey> = text.split(',').map(HandlingKey::new).collect::<Result<_, _>>()?;
    let everything = kinds.iter().any(|kind| kind.as_str() == "Event");
    Ok(if everything { vec![] } else { kinds })
}

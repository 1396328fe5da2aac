//! What a request asks for, and about which orders.

use pointsman_core::HandlingKey;
use pointsman_core::chain::OrderKey;
use pointsman_core::journal::PathFilter;
use pointsman_core::names::RESERVED_TYPES;

use crate::config::nearest::hint;

const OVERVIEW: &str = "OrderOverview";
const STATISTICS: &str = "OrderStatistics";
const STATISTICS_CHANGED: &str = "OrderStatisticsChanged";

/// Which orders.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) path: PathFilter,
    /// The path names this one order.
    pub(super) one: Option<OrderKey>,
}

impl Wanted {
    pub(super) fn everything() -> Self {
        Self { path: PathFilter::Everything, one: None }
    }

    pub(super) fn read(text: &str) -> Result<Self, String> {
        let path = text.parse().map_err(|e: pointsman_core::journal::BadPath| e.to_string())?;
        // A comma stands in the name of an order and nowhere else.
        let one = text.contains(',').then(|| text.parse()).transpose();
        let one = one.map_err(|e: pointsman_core::names::BadName| e.to_string())?;
        Ok(Self { path, one })
    }
}

/// What `return` names.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Return {
    Overview,
    Statistics,
    StatisticsChanged,
    /// Events of these types; all of them if there are none.
    Events(Vec<HandlingKey>),
}

impl Return {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        match text {
            OVERVIEW => return Ok(Self::Overview),
            STATISTICS => return Ok(Self::Statistics),
            STATISTICS_CHANGED => return Ok(Self::StatisticsChanged),
            _ => {}
        }
        let kinds: Vec<HandlingKey> = text.split(',').map(kind).collect::<Result<_, _>>()?;
        let everything = kinds.iter().any(|kind| kind.as_str() == "Event");
        Ok(Self::Events(if everything { vec![] } else { kinds }))
    }
}

/// One of the document's types of events.
fn kind(name: &str) -> Result<HandlingKey, String> {
    if [OVERVIEW, STATISTICS, STATISTICS_CHANGED].contains(&name) {
        return Err(format!("`{name}` is asked for by itself, not together with others"));
    }
    let known = RESERVED_TYPES.iter().copied().find(|known| *known == name);
    let kind = known.and_then(|known| HandlingKey::new(known).ok());
    kind.ok_or_else(|| {
        let names = RESERVED_TYPES.iter().copied().chain([OVERVIEW, STATISTICS]);
        format!("there is nothing called {name:?} to return here{}", hint(name, names))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        match Return::read(text) {
            Ok(Return::Events(kinds)) => kinds.iter().map(ToString::to_string).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_return_is_a_view_or_types_of_events() {
        assert_eq!(Return::read("OrderOverview"), Ok(Return::Overview));
        assert_eq!(Return::read("OrderStatistics"), Ok(Return::Statistics));
        assert_eq!(Return::read("OrderStatisticsChanged"), Ok(Return::StatisticsChanged));
        assert_eq!(kinds("OrderEvent,TaskStarted"), ["OrderEvent", "TaskStarted"]);
        assert!(kinds("Event").is_empty() && kinds("OrderEvent,Event").is_empty());
    }

    #[test]
    fn what_the_document_does_not_have_is_refused() {
        for bad in
            ["", ",", "Event,", "event", "record", "OrderEvents", "Event.x", "OrderStarted.x", "Order Event"]
        {
            assert!(Return::read(bad).is_err(), "{bad:?}");
        }
        for bad in
            ["OrderOverview,Event", "Event,OrderStatistics", "OrderStatisticsChanged,OrderStatisticsChanged"]
        {
            assert!(Return::read(bad).unwrap_err().contains("by itself"), "{bad:?}");
        }
        assert!(Return::read("OrderOverviews").unwrap_err().ends_with("did you mean `OrderOverview`?"));
    }

    #[test]
    fn a_path_may_name_one_order() {
        assert_eq!(Wanted::read("/"), Ok(Wanted::everything()));
        assert_eq!(Wanted::read("/a/x").unwrap().one, None);
        assert_eq!(Wanted::read("/a/x,1").unwrap().one, "/a/x,1".parse().ok());
        for bad in ["", "a", "a/x,1", "//", "/a//b", "/a/x,", "/a/x,1,2", "/a/x,1/", "/a,b/x"] {
            assert!(Wanted::read(bad).is_err(), "{bad:?}");
        }
    }
}

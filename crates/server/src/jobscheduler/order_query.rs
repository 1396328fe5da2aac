//! Which orders a request selects, and what it returns.

use pointsman_core::EventType;
use pointsman_core::chain::OrderKey;
use pointsman_core::journal::PathFilter;
use pointsman_core::names::ENGINE_EVENT_TYPES;

use pointsman_core::suggestion::did_you_mean_suffix;

const RETURN_OVERVIEW: &str = "OrderOverview";
const RETURN_STATISTICS: &str = "OrderStatistics";
const RETURN_STATISTICS_CHANGED: &str = "OrderStatisticsChanged";

/// The orders that a path selects.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OrderSelection {
    pub(super) path_filter: PathFilter,
    /// The single order that the path names.
    pub(super) single_order_key: Option<OrderKey>,
}

impl OrderSelection {
    pub(super) fn all() -> Self {
        Self { path_filter: PathFilter::Everything, single_order_key: None }
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let path = text.parse().map_err(|e: pointsman_core::journal::BadPathFilter| e.to_string())?;
        // Only the key of an order has a comma.
        let order = text.contains(',').then(|| text.parse()).transpose();
        let order = order.map_err(|e: pointsman_core::names::BadName| e.to_string())?;
        Ok(Self { path_filter: path, single_order_key: order })
    }
}

/// The parameter `return`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ReturnKind {
    Overview,
    Statistics,
    NextStatisticsChange,
    /// Events of these types; of all types if empty.
    Events(Vec<EventType>),
}

impl ReturnKind {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            RETURN_OVERVIEW => return Ok(Self::Overview),
            RETURN_STATISTICS => return Ok(Self::Statistics),
            RETURN_STATISTICS_CHANGED => return Ok(Self::NextStatisticsChange),
            _ => {}
        }
        let event_types: Vec<EventType> = text.split(',').map(parse_event_type).collect::<Result<_, _>>()?;
        let has_root_type = event_types.iter().any(|event_type| event_type.as_str() == "Event");
        Ok(Self::Events(if has_root_type { vec![] } else { event_types }))
    }
}

/// Parses one of the event types of the JobScheduler API.
fn parse_event_type(name: &str) -> Result<EventType, String> {
    if [RETURN_OVERVIEW, RETURN_STATISTICS, RETURN_STATISTICS_CHANGED].contains(&name) {
        return Err(format!("`{name}` is requested by itself, not together with other types"));
    }
    let reserved = ENGINE_EVENT_TYPES.iter().copied().find(|reserved| *reserved == name);
    let event_type = reserved.and_then(|reserved| EventType::new(reserved).ok());
    event_type.ok_or_else(|| {
        let names = ENGINE_EVENT_TYPES.iter().copied().chain([RETURN_OVERVIEW, RETURN_STATISTICS]);
        format!("{name:?} is not a type that can be returned here{}", did_you_mean_suffix(name, names))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_event_types(text: &str) -> Vec<String> {
        match ReturnKind::parse(text) {
            Ok(ReturnKind::Events(event_types)) => event_types.iter().map(ToString::to_string).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn return_parameter_is_overview_statistics_or_event_types() {
        assert_eq!(ReturnKind::parse("OrderOverview"), Ok(ReturnKind::Overview));
        assert_eq!(ReturnKind::parse("OrderStatistics"), Ok(ReturnKind::Statistics));
        assert_eq!(ReturnKind::parse("OrderStatisticsChanged"), Ok(ReturnKind::NextStatisticsChange));
        assert_eq!(parse_event_types("OrderEvent,TaskStarted"), ["OrderEvent", "TaskStarted"]);
        assert!(parse_event_types("Event").is_empty() && parse_event_types("OrderEvent,Event").is_empty());
    }

    #[test]
    fn unknown_return_types_are_rejected() {
        for bad in
            ["", ",", "Event,", "event", "record", "OrderEvents", "Event.x", "OrderStarted.x", "Order Event"]
        {
            assert!(ReturnKind::parse(bad).is_err(), "{bad:?}");
        }
        for bad in
            ["OrderOverview,Event", "Event,OrderStatistics", "OrderStatisticsChanged,OrderStatisticsChanged"]
        {
            assert!(ReturnKind::parse(bad).unwrap_err().contains("by itself"), "{bad:?}");
        }
        assert!(ReturnKind::parse("OrderOverviews").unwrap_err().ends_with("did you mean `OrderOverview`?"));
    }

    #[test]
    fn a_path_may_name_one_order() {
        assert_eq!(OrderSelection::parse("/"), Ok(OrderSelection::all()));
        assert_eq!(OrderSelection::parse("/a/x").unwrap().single_order_key, None);
        assert_eq!(OrderSelection::parse("/a/x,1").unwrap().single_order_key, "/a/x,1".parse().ok());
        for bad in ["", "a", "a/x,1", "//", "/a//b", "/a/x,", "/a/x,1,2", "/a/x,1/", "/a,b/x"] {
            assert!(OrderSelection::parse(bad).is_err(), "{bad:?}");
        }
    }
}

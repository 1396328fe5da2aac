//! Views of objects.

use std::sync::Arc;

use pointsman_core::journal::JournalRange;
use pointsman_core::store::{LaneView, MAX_LISTED_LANES, ObjectView};
use pointsman_core::{Event, EventId};

/// Builds the view of an object from its last events and its first lanes. The caller reads one lane more than the view
/// contains.
pub fn build_object_view(
    last: EventId,
    events: Vec<Arc<Event>>,
    mut lanes: Vec<LaneView>,
    extent: JournalRange,
) -> ObjectView {
    let more_lanes = lanes.len() > MAX_LISTED_LANES;
    lanes.truncate(MAX_LISTED_LANES);
    lanes.sort_by(|a, b| a.head.handler.cmp(&b.head.handler));
    ObjectView { last_event: last, events, lanes, has_more_lanes: more_lanes, journal_range: extent }
}

/// Number of lanes to read.
pub const LANES_TO_READ: usize = MAX_LISTED_LANES + 1;

//! Views of objects.

use std::sync::Arc;

use pointsman_core::journal::Extent;
use pointsman_core::store::{LaneView, MOST_LANES, ObjectView};
use pointsman_core::{Event, EventId};

/// Builds the view of an object from its last events and its first lanes. The caller reads one lane more than the view
/// contains.
pub fn build_object_view(
    last: EventId,
    events: Vec<Arc<Event>>,
    mut lanes: Vec<LaneView>,
    extent: Extent,
) -> ObjectView {
    let more_lanes = lanes.len() > MOST_LANES;
    lanes.truncate(MOST_LANES);
    lanes.sort_by(|a, b| a.head.handler.cmp(&b.head.handler));
    ObjectView { last, events, lanes, more_lanes, extent }
}

/// Number of lanes to read.
pub const LANES_TO_READ: usize = MOST_LANES + 1;

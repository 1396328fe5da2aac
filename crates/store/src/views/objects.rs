//! Views of objects.

use std::sync::Arc;

use pointsman_core::journal::JournalRange;
use pointsman_core::store::{LaneView, MAX_LISTED_LANES, ObjectView};
use pointsman_core::{Event, EventId};

/// Builds the view of an object from its last events and its first [`LANES_READ_PER_OBJECT_VIEW`] lanes.
pub fn build_object_view(
    last_event: EventId,
    events: Vec<Arc<Event>>,
    mut lanes: Vec<LaneView>,
    journal_range: JournalRange,
) -> ObjectView {
    let has_more_lanes = lanes.len() > MAX_LISTED_LANES;
    lanes.truncate(MAX_LISTED_LANES);
    lanes.sort_by(|a, b| a.head.handler.cmp(&b.head.handler));
    ObjectView { last_event_id: last_event, events, lanes, has_more_lanes, journal_range }
}

/// Number of lanes to read for the view of an object: one more than it lists, which shows whether there are more.
pub const LANES_READ_PER_OBJECT_VIEW: usize = MAX_LISTED_LANES + 1;

//! Checks that hold for every journal: ids ascend, and `prev` names the preceding event of the same object.

use std::collections::HashMap;
use std::sync::Arc;

use pointsman_core::{Event, EventId};

/// Asserts that ids ascend, and that `prev` is the id of the preceding event of the same object. The first event of an object
/// may name one from before the store existed.
pub(crate) fn assert_ids_and_prev_links(events: &[Arc<Event>]) {
    let mut last: HashMap<(String, String), EventId> = HashMap::new();
    for pair in events.windows(2) {
        assert!(pair[0].id < pair[1].id, "{} follows {}", pair[1].id, pair[0].id);
    }
    for event in events {
        let Some(key) = &event.key else { continue };
        let object = (event.tenant.to_string(), key.to_string());
        if let Some(before) = last.insert(object, event.id) {
            assert_eq!(event.prev, Some(before), "{} of {key}", event.id);
        }
        assert!(event.prev.is_none_or(|prev| prev < event.id), "{} of {key}", event.id);
    }
}

//! The one place of this crate that reads the clock.

use std::time::{SystemTime, UNIX_EPOCH};

use pointsman_core::Timestamp;

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::MIN.plus(since)
}

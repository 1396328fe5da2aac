//! A copied store behaves as the original does: runs the behaviours of the suite that restart the store, and copies it
//! at every restart, from the embedded store to PostgreSQL and back.

mod common;
mod store_location;

use store_location::{CopyHarness, LocationKind};

pointsman_store_conformance::copy_restart_suite!(CopyHarness::with_location_kinds(&[
    LocationKind::File,
    LocationKind::Database
]));

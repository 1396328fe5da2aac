//! A copied store is the same store: behaviours of the suite that survive a restart survive a copy, from the embedded
//! store to PostgreSQL and back at every restart.

mod common;
mod store_location;

use store_location::{CopyHarness, LocationKind};

pointsman_store_conformance::copy_restart_suite!(CopyHarness::with_location_kinds(&[
    LocationKind::File,
    LocationKind::Database
]));

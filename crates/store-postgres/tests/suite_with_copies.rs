//! A copied store is the same store: behaviours of the suite that survive a restart survive a copy, from the embedded
//! store to PostgreSQL and back at every restart.

mod common;
mod store_location;

use store_location::{CopyHarness, LocationKind};

pointsman_store_conformance::moves!(CopyHarness::along(&[LocationKind::File, LocationKind::Database]));

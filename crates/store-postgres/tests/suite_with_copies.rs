//! A store that is moved is the same store: behaviours of the one suite that survive a restart survive a move, from the
//! embedded store to PostgreSQL and back again at every restart.

mod common;
mod store_location;

use store_location::{CopyHarness, LocationKind};

pointsman_store_conformance::moves!(CopyHarness::along(&[LocationKind::File, LocationKind::Database]));

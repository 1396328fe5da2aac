//! A store that is moved is the same store: behaviours of the one suite that survive a restart survive a move, from the
//! embedded store to PostgreSQL and back again at every restart.

mod common;
mod lair;

use lair::{Kind, Movers};

pointsman_store_conformance::moves!(Movers::along(&[Kind::File, Kind::Database]));

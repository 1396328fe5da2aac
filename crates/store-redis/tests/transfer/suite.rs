//! What holds for moves to any store and from there.

use crate::lair::Lair;

pointsman_store_conformance::transfers!(Lair);

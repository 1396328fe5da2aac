//! A store that is moved is the same store: behaviours of the one suite that survive a restart survive a move to Redis, and
//! from there.

mod lair;

use lair::{Kind, Movers};

mod from_a_file {
    use super::*;

    pointsman_store_conformance::moves!(Movers::along(&[Kind::File, Kind::Keys]));
}

mod from_redis {
    use super::*;

    pointsman_store_conformance::moves!(Movers::along(&[Kind::Keys, Kind::File]));
}

//! A store that is moved is the same store: behaviours of the one suite that survive a restart survive a move to Redis, and
//! from there.

mod store_location;

use store_location::{CopyHarness, StoreKind};

mod from_sqlite {
    use super::*;

    pointsman_store_conformance::copy_restart_suite!(CopyHarness::with_kinds(&[
        StoreKind::Sqlite,
        StoreKind::Redis
    ]));
}

mod from_redis {
    use super::*;

    pointsman_store_conformance::copy_restart_suite!(CopyHarness::with_kinds(&[
        StoreKind::Redis,
        StoreKind::Sqlite
    ]));
}

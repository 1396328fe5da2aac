//! A copied store behaves like the original: tests of the conformance suite that restart a store also pass if the store is
//! copied to or from Redis instead.

mod store_location;

use store_location::{AnyStoreCopyOnReopenHarness, StoreKind};

mod from_sqlite {
    use super::*;

    pointsman_store_conformance::copy_restart_suite!(AnyStoreCopyOnReopenHarness::with_location_kinds(&[
        StoreKind::Sqlite,
        StoreKind::Redis
    ]));
}

mod from_redis {
    use super::*;

    pointsman_store_conformance::copy_restart_suite!(AnyStoreCopyOnReopenHarness::with_location_kinds(&[
        StoreKind::Redis,
        StoreKind::Sqlite
    ]));
}

//! Interrupted copies, and resuming them.

use std::sync::Arc;

use pointsman_store_conformance::copy::interrupted::a_copy_continues_after_a_broken_connection;
use pointsman_store_redis::RedisStoreCopy;
use pointsman_testing::{FaultProxy, shared_redis};

use crate::store_location::TestStoreLocation;

#[tokio::test]
async fn broken_connection_loses_no_copied_rows() {
    let keys = TestStoreLocation::empty_redis();
    let proxy = Arc::new(FaultProxy::start(shared_redis().unwrap().address()).unwrap());
    let url = format!("redis://{}/?prefix={}&connect_timeout=1", proxy.address(), keys.key_prefix());
    let (proxy, open_through_proxy) =
        (proxy.clone(), move || Box::new(RedisStoreCopy::open_target(&url).unwrap()) as _);
    let cut = move || {
        proxy.set_refuse_connections(true).unwrap();
        proxy.close_connections();
    };
    a_copy_continues_after_a_broken_connection(keys, open_through_proxy, cut).await;
}

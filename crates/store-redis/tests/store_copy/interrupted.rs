//! Interrupted copies, and resuming them.

use std::sync::Arc;

use pointsman_store_conformance::moving::cut::a_move_goes_on_behind_a_break;
use pointsman_store_redis::RedisStoreCopy;
use pointsman_testing::{Proxy, shared_redis};

use crate::store_location::StoreLocation;

#[tokio::test]
async fn broken_connection_loses_no_copied_rows() {
    let keys = StoreLocation::empty_redis();
    let proxy = Arc::new(Proxy::start(shared_redis().unwrap().address()).unwrap());
    let url = format!("redis://{}/?prefix={}&connect_timeout=1", proxy.address(), keys.prefix());
    let (proxy, over_the_wire) =
        (proxy.clone(), move || Box::new(RedisStoreCopy::target(&url).unwrap()) as _);
    let cut = move || {
        proxy.refuse(true).unwrap();
        proxy.cut();
    };
    a_move_goes_on_behind_a_break(keys, over_the_wire, cut).await;
}

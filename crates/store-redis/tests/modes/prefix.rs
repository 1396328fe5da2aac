//! Stores that share a server, each under what its keys begin with.

use pointsman_testing::{RedisServer, RedisSettings};

use crate::WorkingNode;
use crate::common::redis_location::RedisLocation;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stores_with_different_prefixes_are_isolated() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let whole = RedisLocation::on_whole_server(&server);
    let under = |prefix: &str| {
        let url = server.admin().url_with_prefix(prefix);
        RedisLocation { prefix: prefix.into(), url, ..whole.clone() }
    };
    // One of them looks like a pattern.
    let odd = RedisLocation { url: server.admin().url_with_prefix("a%3Fb%2A:"), ..under("a?b*:") };
    let places = [whole.clone(), under("shop:"), odd];
    let mut stores = vec![];
    for location in &places {
        stores.push(WorkingNode::open(location).await);
    }
    for (working, location) in stores.iter().zip(&places) {
        working.run_all_operations(location, 0, 20).await;
    }
    let mut client = whole.connect();
    let keys = client.list_keys("*").len();
    let of_others = client.list_keys("shop:*").len() + client.list_keys("a[?]b[*]:*").len();
    assert!(keys - of_others > 20 && client.list_keys("shop:*").len() > 20, "{keys} {of_others}");
    for working in stores {
        working.node.close().await;
    }
}

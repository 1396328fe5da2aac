//! Stores that share a server, each with its own prefix.

use pointsman_testing::{RedisServer, RedisSettings};

use crate::WorkingNode;
use crate::common::redis_location::RedisLocation;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stores_with_different_prefixes_are_isolated() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let without_prefix = RedisLocation::on_server_without_prefix(&server);
    let with_prefix = |prefix: &str| {
        let url = server.admin().url_with_prefix(prefix);
        RedisLocation { prefix: prefix.into(), url, ..without_prefix.clone() }
    };
    // This prefix contains pattern characters.
    let pattern_like =
        RedisLocation { url: server.admin().url_with_prefix("a%3Fb%2A:"), ..with_prefix("a?b*:") };
    let locations = [without_prefix.clone(), with_prefix("shop:"), pattern_like];
    let mut stores = vec![];
    for location in &locations {
        stores.push(WorkingNode::open(location).await);
    }
    for (working, location) in stores.iter().zip(&locations) {
        working.run_all_operations(location, 0, 20).await;
    }
    let mut client = without_prefix.connect();
    let keys = client.list_keys("*").len();
    let keys_of_others = client.list_keys("shop:*").len() + client.list_keys("a[?]b[*]:*").len();
    assert!(keys - keys_of_others > 20 && client.list_keys("shop:*").len() > 20, "{keys} {keys_of_others}");
    for working in stores {
        working.node.close().await;
    }
}

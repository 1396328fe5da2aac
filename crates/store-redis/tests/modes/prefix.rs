//! Stores that share a server, each under what its keys begin with.

use pointsman_testing::{Redis, RedisSettings};

use crate::Working;
use crate::common::place::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stores_on_one_server_see_nothing_of_each_other() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let whole = Place::whole(&server);
    let under = |prefix: &str| {
        let url = server.admin().url_under(prefix);
        Place { prefix: prefix.into(), url, ..whole.clone() }
    };
    // One of them looks like a pattern.
    let odd = Place { url: server.admin().url_under("a%3Fb%2A:"), ..under("a?b*:") };
    let places = [whole.clone(), under("shop:"), odd];
    let mut stores = vec![];
    for place in &places {
        stores.push(Working::open(place).await);
    }
    for (working, place) in stores.iter().zip(&places) {
        working.does_all(place, 0, 20).await;
    }
    let mut hand = whole.connect();
    let keys = hand.keys("*").len();
    let of_others = hand.keys("shop:*").len() + hand.keys("a[?]b[*]:*").len();
    assert!(keys - of_others > 20 && hand.keys("shop:*").len() > 20, "{keys} {of_others}");
    for working in stores {
        working.node.close().await;
    }
}

//! A master behind sentinels.

use pointsman_testing::{Redis, RedisSentinel};
use tokio::task::block_in_place;

use crate::Working;
use crate::common::place::Place;

fn place(sentinel: &RedisSentinel, master: &Redis) -> Place {
    Place { admin: master.admin().clone(), prefix: String::new(), url: sentinel.url() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_goes_on_with_the_one_that_sentinels_name() {
    let sentinel = block_in_place(RedisSentinel::start).unwrap();
    let master = sentinel.master().unwrap();
    let before = place(&sentinel, master);
    let working = Working::open(&before).await;
    working.does_all(&before, 0, 20).await;
    let next = block_in_place(|| {
        before.connect().ask(&["WAIT", "1", "30000"]);
        let old = sentinel.kill_master().unwrap();
        sentinel.wait_for_failover(old).unwrap()
    });
    working.goes_on().await;
    working.does_all(&place(&sentinel, next), 20, 20).await;
    working.node.close().await;
}

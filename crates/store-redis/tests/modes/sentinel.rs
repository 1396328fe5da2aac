//! A master behind sentinels.

use pointsman_testing::{Redis, RedisSentinel};
use tokio::task::block_in_place;

use crate::Working;
use crate::common::place::Place;
use crate::failover::{keeps_its_history, wait_for_replica};

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
        wait_for_replica(&before);
        let old = sentinel.kill_master().unwrap();
        sentinel.wait_for_failover(old).unwrap()
    });
    working.goes_on().await;
    working.does_all(&place(&sentinel, next), 20, 20).await;
    working.node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn history_is_whole_after_failovers_under_load() {
    let sentinel = block_in_place(RedisSentinel::start).unwrap();
    let first = place(&sentinel, sentinel.master().unwrap());
    let mut forth = || {
        let killed = sentinel.kill_master().unwrap();
        let next = sentinel.wait_for_failover(killed).unwrap();
        sentinel.rejoin(killed).unwrap();
        place(&sentinel, next)
    };
    let mut back = || {
        let killed = sentinel.kill_master().unwrap();
        place(&sentinel, sentinel.wait_for_failover(killed).unwrap())
    };
    keeps_its_history(first, &mut [&mut forth, &mut back]).await;
}

//! A failover under load, and checks of the journal afterwards.
//!
//! Redis replicates after it has replied, so a failover may lose the newest acknowledged events, as documented in docs/redis.md.
//! Events that the replica confirmed before the master died, and all that the new master acknowledged, are in the journal
//! once and in order.

use tokio::task::block_in_place;

use crate::common::load::Load;
use crate::common::redis_location::RedisLocation;

/// Producers of each of the two nodes.
const PRODUCERS_PER_NODE: u64 = 4;
/// Acknowledged events on each node before, between and after failovers.
const EVENTS_PER_PHASE: usize = 80;

/// Waits until a replica has everything that was written before this call. `WAIT` covers only writes of the same
/// connection, so it writes a key.
pub(crate) fn wait_for_replica(location: &RedisLocation) {
    let mut client = location.connect();
    client.run_command(&["SET", ":replica.probe", "1"]);
    let replicas = client.query_integer(&["WAIT", "1", "30000"]);
    client.run_command(&["DEL", ":replica.probe"]);
    assert_eq!(replicas, 1, "no replica has confirmed the writes");
}

/// Runs two nodes under load. Each `failover` kills the master and returns the location of the new one.
pub(crate) async fn assert_journal_survives_failovers(
    first: RedisLocation,
    failovers: &mut [&mut dyn FnMut() -> RedisLocation],
) {
    let loads = [
        Load::start(&first, &first.url, PRODUCERS_PER_NODE).await,
        Load::start(&first, &first.url, PRODUCERS_PER_NODE).await,
    ];
    let mut location = first;
    for failover in failovers {
        wait_for_acknowledged(&loads).await;
        location = block_in_place(|| {
            loads.iter().for_each(Load::record_failover_begin);
            wait_for_replica(&location);
            failover()
        });
        loads.iter().for_each(|load| load.record_failover_end(&location));
    }
    wait_for_acknowledged(&loads).await;
    let at_risk: usize = loads.iter().map(Load::at_risk_count).sum();
    println!("{at_risk} events were acknowledged while a failover could lose them");
    Load::stop_and_verify(loads, &location).await;
}

async fn wait_for_acknowledged(loads: &[Load; 2]) {
    for load in loads {
        load.wait_for_acknowledged(EVENTS_PER_PHASE).await;
    }
}

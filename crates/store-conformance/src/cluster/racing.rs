//! Concurrent calls from several nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use pointsman_core::store::{ClaimedTask, NewCollectionRun, OrderBatch, OrderError};
use pointsman_core::task::TaskCommandError;
use pointsman_core::{EventId, RuleKind, TaskSeq};

use super::{TestCluster, join_nodes};
use crate::fixture::*;

/// Runs `work` concurrently on every node, `times` times each.
async fn run_on_all_nodes<'w, F: Future>(
    nodes: &'w [StoreFixture<'w>],
    times: usize,
    work: impl Fn(&'w StoreFixture<'w>, usize) -> F,
) -> Vec<F::Output> {
    let work = &work;
    join_all(nodes.iter().flat_map(|node| (0..times).map(move |n| work(node, n)))).await
}

pub async fn racing_emits_are_journaled_once_and_in_order(cluster: &dyn TestCluster) {
    const EVENTS_PER_EMITTER: usize = 60;
    let nodes: [_; 3] = join_nodes(cluster, RegistrationBuilder::single_handler()).await;
    let ids = run_on_all_nodes(&nodes, 4, async |node, emitter| {
        let mut ids = Vec::new();
        for n in 0..EVENTS_PER_EMITTER {
            let new = new_event("record")
                .with_key(&format!("object:{}", (emitter + n) % 7))
                .with_value(&n.to_string());
            ids.push(node.emit(new).await.id);
        }
        // Events emitted one after the other by one emitter get ascending ids.
        assert_strictly_ascending(&ids);
        ids
    });
    let ids: Vec<EventId> = ids.await.into_iter().flatten().collect();
    let all: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(all.len(), ids.len());
    for node in &nodes {
        let read: Vec<_> = node.read_all_events().await.iter().map(|event| event.id).collect();
        assert!(read.iter().eq(&all));
    }
    cluster.assert_consistent().await;
}

/// Asserts that at most one task of each object runs at a time, and that the tasks of an object are claimed in the order
/// of its events.
#[derive(Default)]
struct LaneOrderChecker {
    running_keys: BTreeSet<String>,
    last_event_by_key: BTreeMap<String, EventId>,
    claimed_task_seqs: BTreeSet<TaskSeq>,
}

impl LaneOrderChecker {
    fn check_and_record_claim(&mut self, task: &ClaimedTask) {
        let event = task.event();
        let key = event.key.as_ref().expect("it has a key").to_string();
        assert!(self.claimed_task_seqs.insert(task.seq), "{} was claimed twice", task.id);
        assert!(self.running_keys.insert(key.clone()), "two tasks of {key} run at the same time");
        let last = self.last_event_by_key.insert(key.clone(), event.id);
        assert!(last < Some(event.id), "tasks of {key} were claimed out of order");
    }

    fn record_end(&mut self, task: &ClaimedTask) {
        self.running_keys.remove(task.event().key.as_ref().expect("it has a key").as_str());
    }
}

pub async fn racing_claims_are_disjoint_and_keep_lane_order(cluster: &dyn TestCluster) {
    const TASK_COUNT: usize = 500;
    let nodes: [_; 3] = join_nodes(cluster, RegistrationBuilder::single_handler()).await;
    for n in 0..TASK_COUNT / 50 {
        let some = (0..50).map(|i| new_event("record").with_key(&format!("object:{}", (n + i * i) % 40)));
        nodes[n % 3].emit_in_one_batch(some.collect()).await;
    }
    let lanes = Mutex::new(LaneOrderChecker::default());
    run_on_all_nodes(&nodes, 2, async |node, _| {
        while lanes.lock().expect("no lock holder has panicked").claimed_task_seqs.len() < TASK_COUNT {
            let claimed = node.claim(5).await;
            claimed.iter().for_each(|task| {
                lanes.lock().expect("no lock holder has panicked").check_and_record_claim(task)
            });
            for task in claimed {
                // The end is recorded first: right after the finish another node may claim the next task of the lane.
                lanes.lock().expect("no lock holder has panicked").record_end(&task);
                node.succeed(&task).await;
            }
        }
    })
    .await;
    assert!(nodes[0].claim(10).await.is_empty());
    cluster.assert_consistent().await;
}

pub async fn concurrency_limit_applies_to_all_nodes_together(cluster: &dyn TestCluster) {
    const TASK_COUNT: usize = 120;
    let nodes: [_; 3] = join_nodes(
        cluster,
        RegistrationBuilder::single_handler().unordered("index").concurrency_limit("index", 3),
    )
    .await;
    nodes[0].emit_copies(TASK_COUNT, new_event("record")).await;
    let (running, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let max_running = run_on_all_nodes(&nodes, 2, async |node, _| {
        let mut max_running = 0;
        while ran.load(Ordering::SeqCst) < TASK_COUNT {
            let claimed = node.claim(4).await;
            max_running = max_running.max(running.fetch_add(claimed.len(), Ordering::SeqCst) + claimed.len());
            for task in claimed {
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
                ran.fetch_add(1, Ordering::SeqCst);
                node.succeed(&task).await;
            }
        }
        max_running
    });
    let max_running = max_running.await.into_iter().max().expect("there are some");
    assert_eq!((ran.into_inner(), max_running), (TASK_COUNT, 3));
    cluster.assert_consistent().await;
}

pub async fn rate_limit_applies_to_all_nodes_together(cluster: &dyn TestCluster) {
    let mut nodes: [_; 2] = join_nodes(
        cluster,
        RegistrationBuilder::single_handler().unordered("index").rate_limit("index", "10/m"),
    )
    .await;
    nodes[0].emit_copies(100, new_event("record")).await;
    let mut started = 0;
    for round in 0..40 {
        for node in &nodes {
            for task in node.claim(100).await {
                node.succeed(&task).await;
                started += 1;
            }
        }
        // The initial burst may start immediately.
        assert!(started <= round + 10, "{started} starts after {round} rounds");
        nodes.iter_mut().for_each(|node| node.advance_clock(6));
    }
    assert!(started >= 36, "{started}");
    cluster.assert_consistent().await;
}

pub async fn a_rule_set_on_one_node_applies_to_all_immediately(cluster: &dyn TestCluster) {
    let [one, other, third] = join_nodes(cluster, RegistrationBuilder::single_handler()).await;
    for _ in 0..10 {
        third.emit(new_event("record")).await;
        one.set_pause_rule("index").await;
        assert!(other.claim(1).await.is_empty() && third.claim(1).await.is_empty());
        assert!(other.lift_pause_rule("index").await && !one.lift_pause_rule("index").await);
        third.succeed(&third.claim_one().await).await;
        let block = one.new_rule(RuleKind::Block, "index", Some("shop"));
        expect_ok(one.store.set_rule(block.clone()).await);
        other.emit(new_event("record").for_tenant("shop")).await;
        other.emit(new_event("record")).await;
        assert_eq!(third.run_all_ready_tasks().await.len(), 1, "the other tenant's task is not blocked");
        assert!(expect_ok(third.store.lift_rule(block.kind, &block.scope, block.tenant.as_ref()).await));
        assert_eq!(one.run_all_ready_tasks().await.len(), 1);
    }
    assert!(expect_ok(one.store.list_rules().await).is_empty());
    cluster.assert_consistent().await;
}

pub async fn a_registration_on_one_node_is_visible_to_all(cluster: &dyn TestCluster) {
    let [mut one, mut other] = join_nodes(cluster, RegistrationBuilder::single_handler()).await;
    let more = RegistrationBuilder::single_handler().route("note", &["notify"]).collection("crm/people", 1);
    one.register(more.clone()).await;
    other.registration = more;
    assert_eq!(
        expect_ok(other.store.read_merged_registration().await),
        expect_ok(one.store.read_merged_registration().await)
    );
    assert_eq!(other.emit(new_event("note")).await.tasks.len(), 1);
    assert_eq!(other.claim_one_for_handler("notify").await.handler, handler_name("notify"));
    other.request_new_collection_run("crm/people").await;
    let again = NewCollectionRun { source_collection: source_collection("crm/people"), priority: None };
    assert!(
        !expect_ok(one.store.run_collection(again, None, one.now).await)
            .expect("the collection is registered")
            .created,
        "it is queued on both"
    );
    one.register(RegistrationBuilder::single_handler()).await;
    assert!(other.emit(new_event("note")).await.tasks.is_empty(), "the route is gone on both");
    cluster.assert_consistent().await;
}

pub async fn a_node_with_a_very_stale_cache_catches_up(cluster: &dyn TestCluster) {
    let [busy, idle] =
        join_nodes(cluster, RegistrationBuilder::single_handler().route("note", &["notify"])).await;
    idle.emit(new_event("record").with_key("a")).await;
    let mut waiting = 1;
    // Tries a few commits, more commits than invalidation records are kept for, and thousands, over few and many queues.
    for (commits, tenants) in [(5, 1), (60, 20), (400, 100), (2000, 3)] {
        for n in 0..commits {
            let tenant_name = format!("t{}", n % tenants);
            busy.emit(new_event("note").with_key(&format!("{}", n % 50)).for_tenant(&tenant_name)).await;
            waiting += 1;
            if n % 10 == 0 {
                busy.succeed(&busy.claim_one().await).await;
                waiting -= 1;
            }
        }
        let published: u64 = expect_ok(idle.store.list_queues(None).await)
            .iter()
            .map(|queue| queue.ready_count + queue.waiting_count)
            .sum();
        assert_eq!(published, waiting);
        idle.emit(new_event("record").with_key("a")).await;
        waiting += 1;
        let task = idle.claim_one().await;
        assert_eq!(idle.finish_attempt(finished_attempt(&task, success())).await.map(|_| ()), Ok(()));
        waiting -= 1;
        cluster.assert_consistent().await;
    }
    assert_eq!(idle.run_all_ready_tasks().await.len() as u64, waiting);
    assert!(busy.claim(1).await.is_empty());
    cluster.assert_consistent().await;
}

pub async fn an_expired_node_claims_nothing_and_cannot_finish_its_tasks(cluster: &dyn TestCluster) {
    let [mut live_node, mut expired_node] = join_nodes(cluster, RegistrationBuilder::single_handler()).await;
    live_node.emit(new_event("record").with_key("a")).await;
    live_node.emit(new_event("record").with_key("a")).await;
    let running = expired_node.claim_one().await;
    live_node.advance_clock(LEASE_SECS + 1);
    assert!(live_node.send_heartbeat().await);
    assert_eq!(live_node.rescue_tasks().await.freed_tasks_with_status.len(), 1);
    expired_node.now = live_node.now;
    assert!(expired_node.claim(10).await.is_empty());
    let refused = expired_node.finish_attempt(finished_attempt(&running, success())).await;
    assert!(
        matches!(refused, Err(TaskCommandError::StaleFence | TaskCommandError::WrongState(_))),
        "{refused:?}"
    );
    assert!(!expired_node.send_heartbeat().await);
    expired_node.advance_clock(1);
    live_node.now = expired_node.now;
    let again = live_node.claim_one().await;
    assert!((again.seq, again.attempt) == (running.seq, 2) && again.fence > running.fence);
    assert!(expired_node.finish_attempt(finished_attempt(&running, success())).await.is_err());
    assert_eq!(
        expect_ok(expired_node.store.find_lost_attempts(vec![(running.seq, running.fence)]).await),
        [running.fence]
    );
    assert!(
        expect_ok(expired_node.store.find_lost_attempts(vec![(again.seq, again.fence)]).await).is_empty()
    );
    live_node.succeed(&again).await;
    live_node.succeed(&live_node.claim_one().await).await;
    cluster.assert_consistent().await;
}

pub async fn a_task_running_on_one_node_can_be_cancelled_on_another(cluster: &dyn TestCluster) {
    let [one, other] = join_nodes(cluster, RegistrationBuilder::single_handler()).await;
    let first = one.emit(new_event("record").with_key("a")).await;
    one.emit(new_event("record").with_key("a")).await;
    let running = one.claim_one().await;
    assert_eq!(running.id, first.tasks[0]);
    other.cancel_task(&running.id).await.expect("the command is accepted");
    assert!(one.finish_attempt(finished_attempt(&running, success())).await.is_err());
    assert_eq!(
        expect_ok(one.store.find_lost_attempts(vec![(running.seq, running.fence)]).await),
        [running.fence]
    );
    other.retry_task(&running.id).await.expect("the command is accepted");
    let next = one.claim_one().await;
    assert_ne!(next.seq, running.seq, "a retried task is at the end of its lane");
    one.succeed(&next).await;
    assert_eq!(other.run_all_ready_tasks().await.len(), 1);
    cluster.assert_consistent().await;
}

/// All nodes add the same orders. With an order id, one node wins and the others are refused; with an idempotency
/// key, all get the same receipt.
pub async fn racing_orders_are_added_once(cluster: &dyn TestCluster) {
    let nodes: [_; 3] =
        join_nodes(cluster, RegistrationBuilder::single_handler().chain("/pay", "a=first>done done")).await;
    let added =
        run_on_all_nodes(&nodes, 4, async |node, _| node.try_add_order(new_order("/pay,7")).await.is_ok())
            .await;
    assert_eq!(added.iter().filter(|added| **added).count(), 1);
    let batch = || OrderBatch {
        idempotency_key: Some(idempotency_key("default", "k", 1)),
        ..vec![new_order("/pay"), new_order("/pay,8")].into()
    };
    let receipts = run_on_all_nodes(&nodes, 4, async |node, _| {
        node.add_order_batch(batch()).await.expect("no conflict")
    })
    .await;
    assert_eq!(receipts.iter().filter(|receipt| !receipt.repeated).count(), 1);
    assert!(receipts.iter().all(|receipt| receipt.orders == receipts[0].orders));
    let ran = run_on_all_nodes(&nodes, 1, async |node, _| node.run_all_ready_tasks().await.len()).await;
    assert_eq!(ran.iter().sum::<usize>(), 3);
    let again =
        run_on_all_nodes(&nodes, 2, async |node, _| node.try_add_order(new_order("/pay,7")).await).await;
    assert!(again.iter().all(|answer| matches!(answer, Err(OrderError::IdOfEndedOrder(_)))), "{again:?}");
    cluster.assert_consistent().await;
}

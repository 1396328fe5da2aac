//! A long random history of orders. After every operation, lists, counts and tasks agree with each other and with the
//! state derived from the event stream alone.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_core::chain::ChainNodeAction;
use pointsman_core::journal::EventFilter;
use pointsman_core::store::{AttemptResult, ClaimedTask, OrderCommand, OrderView, TaskFilter};
use pointsman_core::{EventId, TaskSeq, TaskStatus};
use pointsman_testing::Rng;

use crate::Harness;
use crate::fixture::*;

/// The number of random operations of a walk.
const OPERATION_COUNT: usize = 400;

const TESTED_CHAINS: [&str; 2] = ["/x/y", "/z"];
const TESTED_CHAIN_NODES: [&str; 3] = ["a", "b", "c"];

/// Alternative definitions of the chains; the walk switches between them.
fn alternative_chain_registrations() -> [RegistrationBuilder; 4] {
    let whole = "a=first>b!c b=second>c c=third>done!a done";
    let registration = |y: &str, z: &str| RegistrationBuilder::default().chain("/x/y", y).chain("/z", z);
    [
        registration(whole, whole).step_retry_policy("/x/y", "a", 1, 5),
        registration("a=first>b b=second>a!done c=third>done done", whole),
        registration("a=second>b b=first>c!done c=third>done done", "b=second>done c=third>b done"),
        registration(whole, whole).without_chain("/z"),
    ]
}

/// State of an order as derived from the event stream.
#[derive(Clone, Debug, Default, PartialEq)]
struct ObservedOrder {
    chain_node: String,
    started: bool,
    running: bool,
    suspended: bool,
}

struct OrderWalk<'h> {
    fixture: StoreFixture<'h>,
    rng: Rng,
    running_steps: BTreeMap<TaskSeq, ClaimedTask>,
    last_read_event_id: EventId,
    observed_orders: BTreeMap<String, ObservedOrder>,
    last_order_number: u32,
}

/// Returns the value of a string member of an event's JSON text.
fn json_string_member<'t>(text: &'t str, name: &str) -> &'t str {
    let (_, rest) = text.split_once(&format!("\"{name}\":\"")).unwrap_or_else(|| panic!("{name} in {text}"));
    rest.split('"').next().unwrap_or_default()
}

impl OrderWalk<'_> {
    async fn run_random_operation(&mut self) {
        match self.rng.next_below(40) {
            0..=6 => self.add_random_order().await,
            7..=14 => self.claim_steps().await,
            15..=24 => self.finish_random_step().await,
            25..=28 => self.send_random_order_command().await,
            29..=30 => self.set_random_chain_or_chain_node_state().await,
            31..=32 => self.fixture.advance_clock(1 + self.rng.next_below(6) as u64),
            33..=34 => self.cancel_random_step().await,
            35..=36 => self.redefine_chains().await,
            37 => self.crash_and_replace_node().await,
            _ => drop(self.fixture.schedule_tasks(self.rng.next_below(4)).await),
        }
    }

    fn choose_name<'t>(&mut self, names: &[&'t str]) -> &'t str {
        names[self.rng.next_below(names.len())]
    }

    /// Returns the key of a random existing order, or an unused key if there is no order.
    fn random_order_key(&mut self) -> String {
        let keys: Vec<_> = self.observed_orders.keys().cloned().collect();
        match keys.is_empty() {
            true => "/z,nobody".into(),
            false => keys[self.rng.next_below(keys.len())].clone(),
        }
    }

    async fn add_random_order(&mut self) {
        self.last_order_number += 1;
        let mut new = new_order(&format!("{},{}", self.choose_name(&TESTED_CHAINS), self.last_order_number))
            .with_value("0");
        if self.rng.next_below(3) == 0 {
            new = new.starting_at_chain_node(self.choose_name(&TESTED_CHAIN_NODES));
        }
        if self.rng.next_below(4) == 0 {
            new = new.planned_at(self.fixture.seconds_from_now(self.rng.next_below(10) as u64));
        }
        // An undefined chain or chain node is refused, which is fine.
        let _ = self.fixture.try_add_order(new).await;
    }

    async fn claim_steps(&mut self) {
        let max = 1 + self.rng.next_below(3);
        for task in self.fixture.claim(max).await {
            let step = task.step_run();
            let view = self.fixture.read_order(&step.order_key.to_string()).await;
            assert!(view.order.step_running && !view.order.suspended, "a suspended order begins no step");
            assert_eq!((&view.order.node, &view.order.value), (&step.node, &step.value));
            let mut orders = self.running_steps.values().map(|other| &other.step_run().order_key);
            assert!(orders.all(|other| *other != step.order_key), "two steps of {} run", step.order_key);
            self.running_steps.insert(task.seq, task);
        }
    }

    async fn finish_random_step(&mut self) {
        let Some(seq) =
            self.running_steps.keys().nth(self.rng.next_below(self.running_steps.len().max(1))).copied()
        else {
            return;
        };
        let Some(task) = self.running_steps.remove(&seq) else { return };
        let result = match self.rng.next_below(7) {
            0..=2 => {
                AttemptResult::Succeeded { result: Some(parse_json(&self.last_order_number.to_string())) }
            }
            3 => retryable_failure(),
            4 => permanent_failure(),
            5 => AttemptResult::Snoozed { until: self.fixture.seconds_from_now(3) },
            _ => AttemptResult::Released,
        };
        self.fixture.finish_with_result(&task, result).await;
    }

    async fn send_random_order_command(&mut self) {
        let key = self.random_order_key();
        let command = match self.rng.next_below(7) {
            0..=1 => OrderCommand::Suspend,
            2..=3 => OrderCommand::Resume,
            4 => OrderCommand::Remove,
            5 => move_order_command(self.choose_name(&TESTED_CHAIN_NODES)),
            _ => change_value_command("7"),
        };
        let running = self.observed_orders.get(&key).is_some_and(|order| order.running);
        let allowed_while_running = matches!(command, OrderCommand::Suspend | OrderCommand::Resume);
        let answer = self.fixture.send_order_command(&key, command).await;
        assert!(answer.is_err() || allowed_while_running || !running, "{key} was changed while it ran");
    }

    async fn set_random_chain_or_chain_node_state(&mut self) {
        let (chain, node) = (
            chain_path(self.choose_name(&TESTED_CHAINS)),
            chain_node_id(self.choose_name(&TESTED_CHAIN_NODES)),
        );
        let store = &self.fixture.store;
        // An undefined chain or chain node is refused, which is fine.
        let _ = match self.rng.next_below(4) {
            0 => expect_ok(store.set_chain_stopped(&chain, true, self.fixture.now).await),
            1 => expect_ok(store.set_chain_stopped(&chain, false, self.fixture.now).await),
            _ => {
                let action = ChainNodeAction::ALL[self.rng.next_below(3)];
                expect_ok(store.set_chain_node_action(&chain, &node, action, self.fixture.now).await)
            }
        };
    }

    async fn cancel_random_step(&mut self) {
        let key = self.random_order_key();
        if let Some((id, ..)) = self.fixture.find_order(&key).await.and_then(|view| view.task) {
            self.fixture.cancel_task(&id).await.expect("it has not ended");
            self.running_steps.retain(|_, task| task.id != id);
        }
    }

    async fn redefine_chains(&mut self) {
        let registrations = alternative_chain_registrations();
        let number = self.rng.next_below(registrations.len());
        self.fixture.register(registrations[number].clone()).await;
    }

    /// The cluster node dies, and another one joins.
    async fn crash_and_replace_node(&mut self) {
        self.fixture.advance_clock(LEASE_SECS + 1);
        self.fixture.node_id = expect_ok(self.fixture.store.join_node("replacement", self.fixture.now).await);
        let rescued = self.fixture.rescue_tasks().await;
        assert_eq!(rescued.freed_tasks_with_status.len(), self.running_steps.len());
        for stale_attempt in std::mem::take(&mut self.running_steps).into_values() {
            assert!(self.fixture.finish_attempt(finished_attempt(&stale_attempt, success())).await.is_err());
        }
    }

    /// Reads new events from the stream and updates the observed orders.
    async fn apply_new_events(&mut self) {
        for event in self.fixture.read_events_after(self.last_read_event_id, &EventFilter::default()).await {
            self.last_read_event_id = event.id;
            let key =
                event.key.as_ref().map_or("", |key| key.as_str()).trim_start_matches("Order:").to_owned();
            let fields = event.value.as_str();
            match event.event_type.as_str() {
                "FileBasedAdded" => {
                    let added = ObservedOrder {
                        chain_node: json_string_member(fields, "nodeId").into(),
                        ..ObservedOrder::default()
                    };
                    assert!(
                        self.observed_orders.insert(key.clone(), added).is_none(),
                        "{key} was added twice"
                    );
                    continue;
                }
                "FileBasedRemoved" => {
                    self.observed_orders.remove(&key).unwrap_or_else(|| panic!("{key} was removed twice"));
                    continue;
                }
                kind if !kind.starts_with("Order") => continue,
                _ => {}
            }
            let order = self
                .observed_orders
                .get_mut(&key)
                .unwrap_or_else(|| panic!("{key} has an event but was not added"));
            match event.event_type.as_str() {
                "OrderStarted" => assert!(!std::mem::replace(&mut order.started, true), "{key} starts once"),
                "OrderStepStarted" => {
                    assert_eq!(order.chain_node, json_string_member(fields, "nodeId"));
                    assert!(order.started && !std::mem::replace(&mut order.running, true));
                }
                "OrderStepEnded" => assert!(std::mem::replace(&mut order.running, false), "{key} ran"),
                "OrderSetBack" => assert_eq!(order.chain_node, json_string_member(fields, "nodeId")),
                "OrderNodeChanged" => {
                    assert_eq!(order.chain_node, json_string_member(fields, "fromNodeId"));
                    assert!(!order.running, "{key} is moved while it runs");
                    order.chain_node = json_string_member(fields, "nodeId").into();
                }
                "OrderSuspended" => assert!(!std::mem::replace(&mut order.suspended, true)),
                "OrderResumed" => assert!(std::mem::replace(&mut order.suspended, false)),
                _ => assert!(!order.running && !order.suspended, "{key} finishes"),
            }
        }
    }

    async fn check_consistency(&mut self) {
        self.apply_new_events().await;
        let views = self.fixture.list_orders("/").await;
        let seen: BTreeMap<_, _> =
            views.iter().map(|view| (view.order.key.to_string(), observed_order_from_view(view))).collect();
        assert_eq!(seen, self.observed_orders, "the stream and the list agree");
        let statuses = vec![TaskStatus::New, TaskStatus::Scheduled, TaskStatus::Locked, TaskStatus::Missing];
        let unfinished = self.fixture.list_tasks(&TaskFilter { statuses, ..TaskFilter::default() }).await;
        let unfinished: BTreeSet<_> = unfinished.into_iter().map(|task| task.id).collect();
        let own: BTreeSet<_> = views.iter().filter_map(|view| view.task.clone()).map(|(id, ..)| id).collect();
        assert_eq!(own, unfinished, "every task is an order's, and an order has one");
        for view in &views {
            let order = &view.order;
            assert!(!order.suspended || order.step_running || view.task.is_none(), "{}", order.key);
            assert!(!view.is_at_removed_node || order.step_running || view.task.is_none(), "{}", order.key);
        }
        let sum = self.fixture.read_order_statistics("/").await;
        let count = |which: fn(&OrderView) -> bool| views.iter().filter(|view| which(view)).count() as u64;
        assert_eq!(sum.total, views.len() as u64);
        assert_eq!(sum.not_planned + sum.planned + sum.due + sum.started, sum.total);
        assert_eq!(sum.in_task, count(|view| view.task.is_some()));
        assert_eq!(sum.in_process, count(|view| view.order.step_running));
        assert_eq!(sum.in_process, self.running_steps.len() as u64);
        assert_eq!(sum.suspended, count(|view| view.order.suspended));
        assert_eq!(sum.setback, count(|view| view.retry_at.is_some()));
    }

    /// Starts all chains, resumes all orders and asserts that every order finishes.
    async fn finish_all_orders(&mut self) {
        self.fixture.register(alternative_chain_registrations()[0].clone()).await;
        for chain in TESTED_CHAINS {
            self.fixture.set_chain_stopped(chain, false).await;
            for node in TESTED_CHAIN_NODES {
                self.fixture
                    .set_chain_node_action(&format!("{chain} {node}"), ChainNodeAction::Process)
                    .await;
            }
        }
        for task in std::mem::take(&mut self.running_steps).into_values() {
            self.fixture.succeed(&task).await;
        }
        for view in self.fixture.list_orders("/").await {
            self.fixture.resume_order(&view.order.key.to_string()).await;
        }
        self.fixture.advance_clock(1000);
        self.fixture.run_all_ready_tasks().await;
        self.check_consistency().await;
        assert!(self.observed_orders.is_empty(), "{:?} have not finished", self.observed_orders);
    }
}

fn observed_order_from_view(view: &OrderView) -> ObservedOrder {
    let order = &view.order;
    ObservedOrder {
        chain_node: order.node.to_string(),
        started: order.started_at.is_some(),
        running: order.step_running,
        suspended: order.suspended,
    }
}

async fn run_order_walk(harness: &dyn Harness, seed: u64) {
    let fixture = StoreFixture::new(harness, alternative_chain_registrations()[0].clone()).await;
    let (read_up_to, claimed, observed_orders) =
        (fixture.read_journal_head().await, BTreeMap::new(), BTreeMap::new());
    let mut walk = OrderWalk {
        fixture,
        rng: Rng::new(seed),
        running_steps: claimed,
        last_read_event_id: read_up_to,
        observed_orders,
        last_order_number: 0,
    };
    for number in 1..=OPERATION_COUNT {
        walk.run_random_operation().await;
        walk.check_consistency().await;
        if number % 100 == 0 {
            walk.fixture = walk.fixture.reopen().await;
            walk.check_consistency().await;
        }
    }
    walk.finish_all_orders().await;
}

pub async fn a_random_order_walk_matches_its_event_stream(harness: &dyn Harness) {
    run_order_walk(harness, 1).await;
}

pub async fn a_second_random_order_walk_matches_its_event_stream(harness: &dyn Harness) {
    run_order_walk(harness, 20_261_115).await;
}

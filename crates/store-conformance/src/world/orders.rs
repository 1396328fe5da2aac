//! Chains and orders, and what the journal tells of them.

use std::sync::Arc;

use pointsman_core::chain::{Action, ChainPath, Node, NodeId, OrderId, OrderKey, Role, Step};
use pointsman_core::event::Priority;
use pointsman_core::journal::{Filter, PathFilter};
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::{
    Added, ChainView, Claimed, NewOrder, OrderBatch, OrderCommand, OrderReceipt, OrderRefused, OrderView,
    OrdersRefused,
};
use pointsman_core::task::QueueOf;
use pointsman_core::{Event, EventId, TaskId};

use super::*;

pub fn chain_path(text: &str) -> ChainPath {
    ChainPath::new(text).expect("a well-formed path")
}

pub fn node_id(text: &str) -> NodeId {
    NodeId::new(text).expect("a well-formed node")
}

/// `/chain,id`
pub fn order_key(text: &str) -> OrderKey {
    text.parse().expect("a well-formed order")
}

pub fn path(text: &str) -> PathFilter {
    text.parse().expect("a well-formed path")
}

/// `id=handler>next`, `id=handler>next!on_error`, or `id` for an end.
pub(super) fn node(word: &str) -> Node {
    let Some((id, rest)) = word.split_once('=') else {
        return Node { id: node_id(word), role: Role::End };
    };
    let (name, ways) = rest.split_once('>').expect("a step leads somewhere");
    let (next, on_error) = match ways.split_once('!') {
        Some((next, on_error)) => (next, Some(node_id(on_error))),
        None => (ways, None),
    };
    let step = Step { handler: handler(name), next: node_id(next), on_error, setback: None };
    Node { id: node_id(id), role: Role::Step(step) }
}

/// The queue of the steps at a node.
pub fn steps_at(chain: &str, node: &str) -> QueueOf {
    QueueOf::Node { chain: chain_path(chain), node: node_id(node) }
}

/// An order (`/chain,id`, or `/chain` for one that the store names) with nothing else to it.
pub fn order(text: &str) -> NewOrder {
    match text.split_once(',') {
        Some((chain, id)) => {
            let id = Some(OrderId::new(id).expect("a well-formed id"));
            NewOrder { id, ..NewOrder::of(chain_path(chain)) }
        }
        None => NewOrder::of(chain_path(text)),
    }
}

/// What an order to add may have, said in one breath.
pub trait OrderDraft: Sized {
    fn starting(self, node: &str) -> Self;
    fn holding(self, value: &str) -> Self;
    fn planned(self, at: Timestamp) -> Self;
    fn ranking(self, priority: i64) -> Self;
    fn owned_by(self, tenant: &str) -> Self;
}

impl OrderDraft for NewOrder {
    fn starting(self, node: &str) -> Self {
        Self { node: Some(node_id(node)), ..self }
    }

    fn holding(self, value: &str) -> Self {
        Self { value: json(value), ..self }
    }

    fn planned(self, at: Timestamp) -> Self {
        Self { at: Some(at), ..self }
    }

    fn ranking(self, priority: i64) -> Self {
        Self { priority: Priority::try_from(priority).expect("a priority"), ..self }
    }

    fn owned_by(self, of: &str) -> Self {
        Self { tenant: tenant(of), ..self }
    }
}

/// A change of nothing; name what is to change.
pub const NO_CHANGE: OrderCommand = OrderCommand::Change { value: None, node: None, at: None };

pub fn to_node(id: &str) -> OrderCommand {
    OrderCommand::Change { value: None, node: Some(node_id(id)), at: None }
}

pub fn to_time(at: Timestamp) -> OrderCommand {
    OrderCommand::Change { value: None, node: None, at: Some(at) }
}

pub fn to_value(text: &str) -> OrderCommand {
    OrderCommand::Change { value: Some(json(text)), node: None, at: None }
}

/// The orders whose steps these are, with their nodes, as `/chain,id node`.
pub fn steps_of(tasks: &[Claimed]) -> Vec<String> {
    let words = tasks.iter().map(|task| format!("{} {}", task.step().order, task.step().node));
    words.collect()
}

/// Adding and steering.
impl World<'_> {
    pub async fn try_add_all(&self, orders: Vec<NewOrder>) -> Result<Vec<Added>, (usize, OrderRefused)> {
        match self.add_batch(orders.into()).await {
            Ok(receipt) => Ok(receipt.orders),
            Err(OrdersRefused::Order(index, refused)) => Err((index, refused)),
            Err(OrdersRefused::Idempotency(conflict)) => panic!("there is no key: {conflict}"),
        }
    }

    pub async fn add_batch(&self, batch: OrderBatch) -> Result<OrderReceipt, OrdersRefused> {
        must(self.store.add_orders(batch, self.now).await)
    }

    pub async fn add_all(&self, orders: Vec<NewOrder>) -> Vec<Added> {
        self.try_add_all(orders).await.expect("nothing to refuse")
    }

    pub async fn try_add(&self, order: NewOrder) -> Result<Added, OrderRefused> {
        let answer = self.try_add_all(vec![order]).await;
        answer.map(|mut added| added.remove(0)).map_err(|(index, refused)| {
            assert_eq!(index, 0, "there is no other");
            refused
        })
    }

    pub async fn add(&self, order: NewOrder) -> OrderKey {
        self.try_add(order).await.expect("nothing to refuse").order
    }

    pub async fn steer(&self, key: &str, command: OrderCommand) -> Result<(), OrderRefused> {
        self.steer_of("default", key, command).await
    }

    /// Steers the order of a tenant.
    pub async fn steer_of(&self, of: &str, key: &str, command: OrderCommand) -> Result<(), OrderRefused> {
        must(self.store.steer_order(&tenant(of), &order_key(key), command, self.now).await)
    }

    pub async fn suspend(&self, key: &str) {
        self.steer(key, OrderCommand::Suspend).await.expect("the order is there");
    }

    pub async fn resume_order(&self, key: &str) {
        self.steer(key, OrderCommand::Resume).await.expect("the order is there");
    }

    pub async fn remove(&self, key: &str) {
        self.steer(key, OrderCommand::Remove).await.expect("the order can be removed");
    }

    pub async fn set_chain(&self, chain: &str, stopped: bool) {
        must(self.store.stop_chain(&chain_path(chain), stopped, self.now).await).expect("the chain is there");
    }

    /// Sets what a node (`/chain node`) does.
    pub async fn set_node(&self, place: &str, action: Action) {
        let (chain, node) = place.split_once(' ').expect("a chain and a node");
        let answer = self.store.set_node(&chain_path(chain), &node_id(node), action, self.now).await;
        must(answer).expect("the node is there");
    }
}

/// Looking.
impl World<'_> {
    pub async fn find(&self, key: &str) -> Option<OrderView> {
        self.find_of("default", key).await
    }

    /// The order of a tenant, if there is one.
    pub async fn find_of(&self, of: &str, key: &str) -> Option<OrderView> {
        must(self.store.order(&tenant(of), &order_key(key)).await).map(|(view, _)| view)
    }

    pub async fn look(&self, key: &str) -> OrderView {
        self.find(key).await.unwrap_or_else(|| panic!("{key} should be there"))
    }

    /// The name of an order's task, which it has.
    pub async fn task_of(&self, key: &str) -> TaskId {
        self.look(key).await.task.unwrap_or_else(|| panic!("{key} should have a task")).0
    }

    /// All orders that match, read a few at a time.
    pub async fn orders_at(&self, text: &str) -> Vec<OrderView> {
        let (mut after, mut found) = (None, Vec::new());
        for _ in 0..ENDLESS {
            let page = must(self.store.orders(&path(text), None, after, 3).await);
            assert!(page.orders.len() <= 3, "no more than asked for");
            found.extend(page.orders);
            match page.next {
                None => return found,
                next => after = next,
            }
        }
        panic!("listing orders does not end");
    }

    pub async fn statistics(&self, text: &str) -> OrderStatistics {
        must(self.store.order_statistics(&path(text), None, self.now).await).0
    }

    pub async fn chains(&self) -> Vec<ChainView> {
        must(self.store.chains().await).0
    }

    /// Asserts that no step can begin, whoever asks and however.
    pub async fn nothing_begins(&self, why: &str) {
        let claims = self.claims(10).await;
        assert!(claims.tasks.is_empty(), "{why}: {:?}", claims.tasks);
        assert!(!claims.more, "{why}: what cannot begin is not ready");
        assert_eq!(self.schedule(10).await, 0, "{why}");
    }
}

/// What the journal tells of the engine's own.
impl World<'_> {
    pub async fn head(&self) -> EventId {
        self.extent().await.head
    }

    /// The engine's own events after this one.
    pub async fn own_after(&self, after: EventId) -> Vec<Arc<Event>> {
        let mut found = self.read_after(after, &Filter::default()).await;
        found.retain(|event| event.is_engine());
        found
    }

    /// The same as the stream shows them, without their ids and without those of tasks.
    pub async fn shown_after(&self, after: EventId) -> Vec<String> {
        self.own_after(after).await.iter().map(|event| nameless(event)).collect()
    }

    /// The same in a few words: the type, and the fields without ornaments.
    pub async fn told_after(&self, after: EventId) -> Vec<String> {
        self.own_after(after).await.iter().map(|event| in_words(event)).collect()
    }

    /// The same of one order, without its coming and going.
    pub async fn told_of(&self, key: &str, after: EventId) -> Vec<String> {
        let mut found = self.own_after(after).await;
        found.retain(|event| event.key.as_ref().is_some_and(|own| own.as_str() == key));
        found.iter().map(|event| in_words(event)).collect()
    }
}

/// As the stream shows it, with nothing that differs from store to store: no event's id, and a task named without its
/// uuid.
fn nameless(event: &Event) -> String {
    let text = event.to_json().replacen(&format!("\"eventId\":{},", event.id), "", 1);
    without_uuid(&text)
}

pub fn in_words(event: &Event) -> String {
    let fields = without_uuid(event.value.as_str()).replace(['"', '{', '}'], "");
    format!("{} {}", event.kind, fields.replace("nodeTransition:TYPE:", "")).trim_end().to_owned()
}

fn without_uuid(text: &str) -> String {
    let Some((before, rest)) = text.split_once("\"taskId\":\"") else { return text.into() };
    let (name, after) = rest.split_once('"').expect("a text ends");
    let uuid = TaskId::from_text(name).uuid().expect("a task's name ends in a uuid");
    let name = name.trim_end_matches(&format!("_{uuid}"));
    format!("{before}\"taskId\":\"{name}\"{after}")
}

//! Objects of two tenants that have the same name in the keys of 001: they share keys there, and nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::node::Node;
use common::place::{Place, left};
use pointsman_core::store::Journal;
use pointsman_core::{NewEvent, ObjectKey, Tenant};
use pointsman_store_conformance::world::{Draft, event};

fn of_default() -> NewEvent {
    event("a").key("acme/vault:1")
}

fn of_acme() -> NewEvent {
    event("a").tenant("acme").key("vault:1")
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_follows_the_other() {
    for [first, second] in [[of_default(), of_acme()], [of_acme(), of_default()]] {
        let node = Node::open(&Place::shared()).await;
        let one = node.emit(first.clone()).await;
        let two = node.emit(second.clone()).await;
        assert_eq!((one.prev, two.prev), (None, None));
        let more = [node.emit(first.clone()).await, node.emit(second.clone()).await];
        assert_eq!(more.map(|made| made.prev), [Some(one.id), Some(two.id)]);
        let seen = node.store.object(&second.tenant, &second.key.unwrap(), 10).await.unwrap().unwrap();
        assert!(seen.events.iter().all(|event| event.tenant == second.tenant));
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_for_both_goes_to_each() {
    let place = Place::shared();
    let node = Node::open(&place).await;
    let theirs = r#"{"type": "a", "tenant": "acme"}"#.to_string();
    place.connect().push("acme/vault:1", &[theirs.clone(), left("a", 1), theirs, left("a", 2)]);
    let events = node.events(4).await;
    for tenant in [Tenant::default(), Tenant::new("acme").unwrap()] {
        let mine: Vec<_> = events.iter().filter(|event| event.tenant == tenant).collect();
        assert_eq!((mine[0].prev, mine[1].prev), (None, Some(mine[0].id)), "{tenant}");
        let key = if tenant == Tenant::default() { "acme/vault:1" } else { "vault:1" };
        assert_eq!(mine[0].key, Some(ObjectKey::new(key).unwrap()));
    }
    node.close().await;
}

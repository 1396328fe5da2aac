//! Objects of two tenants that have the same name in the keys of document 001: they share keys there, and nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::redis_location::{RedisLocation, outbox_event_json};
use common::test_node::TestNode;
use pointsman_core::store::Journal;
use pointsman_core::{NewEvent, ObjectKey, Tenant};
use pointsman_store_conformance::fixture::{NewEventExt, new_event};

fn default_tenant_event() -> NewEvent {
    new_event("a").with_key("acme/vault:1")
}

fn acme_event() -> NewEvent {
    new_event("a").for_tenant("acme").with_key("vault:1")
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_two_tenants_with_one_name_have_separate_prev_links() {
    for [first, second] in [[default_tenant_event(), acme_event()], [acme_event(), default_tenant_event()]] {
        let node = TestNode::open(&RedisLocation::on_shared_server()).await;
        let one = node.emit(first.clone()).await;
        let two = node.emit(second.clone()).await;
        assert_eq!((one.prev, two.prev), (None, None));
        let later = [node.emit(first.clone()).await, node.emit(second.clone()).await];
        assert_eq!(later.map(|event| event.prev), [Some(one.id), Some(two.id)]);
        let object = node.store.read_object(&second.tenant, &second.key.unwrap(), 10).await.unwrap().unwrap();
        assert!(object.events.iter().all(|event| event.tenant == second.tenant));
        node.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_pushed_to_a_shared_name_reach_their_tenants() {
    let location = RedisLocation::on_shared_server();
    let node = TestNode::open(&location).await;
    let acme_entry = r#"{"type": "a", "tenant": "acme"}"#.to_string();
    location.connect().push_events(
        "acme/vault:1",
        &[acme_entry.clone(), outbox_event_json("a", 1), acme_entry, outbox_event_json("a", 2)],
    );
    let events = node.wait_for_events(4).await;
    for tenant in [Tenant::default(), Tenant::new("acme").unwrap()] {
        let tenant_events: Vec<_> = events.iter().filter(|event| event.tenant == tenant).collect();
        assert_eq!(
            (tenant_events[0].prev, tenant_events[1].prev),
            (None, Some(tenant_events[0].id)),
            "{tenant}"
        );
        let key = if tenant == Tenant::default() { "acme/vault:1" } else { "vault:1" };
        assert_eq!(tenant_events[0].key, Some(ObjectKey::new(key).unwrap()));
    }
    node.close().await;
}

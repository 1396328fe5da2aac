//! Rules of tenants that the store does not know yet.

use pointsman_core::RuleKind;
use pointsman_store::transfer::Section;
use pointsman_store_conformance::moving::Lair as _;
use pointsman_store_conformance::world::*;

use crate::store_location::{CopyHarness, LocationKind, StoreLocation};
use crate::test_store::connect;

/// Deletes the tenant and keeps its rule.
const FORGET_TENANT: &str = "
    DELETE FROM pointsman.rule_note;
    UPDATE pointsman.scheduling_rules SET created_at = 'infinity';
    DELETE FROM pointsman.tenant WHERE name = 'shop'";

#[tokio::test]
async fn a_rule_of_an_unknown_tenant_is_copied_and_applies_once_the_tenant_exists() {
    let harness = CopyHarness::along(&[LocationKind::File]);
    let (from, to) = (
        StoreLocation::empty(LocationKind::Database).await,
        StoreLocation::empty(LocationKind::Database).await,
    );
    let world = World::new(&harness, Plan::simple()).await;
    must(world.store.hold(world.rule(RuleKind::Pause, "index", Some("shop"))).await);
    harness.go_next_to(&from);
    let world = world.reopen().await;
    connect(from.url()).await.batch_execute(FORGET_TENANT).await.unwrap();
    harness.go_next_to(&to);
    let world = world.reopen().await;
    assert!(must(world.store.rules().await).is_empty(), "nobody has heard of the tenant");
    world.emit(event("record").tenant("shop")).await;
    let rules = must(world.store.rules().await);
    assert_eq!(rules.len(), 1);
    assert_eq!((rules[0].kind, rules[0].tenant.as_ref()), (RuleKind::Pause, Some(&tenant("shop"))));

    let report = from.move_to(&StoreLocation::empty(LocationKind::File).await).await.unwrap();
    assert_eq!((report.differences(), report.left_behind()), (vec![], vec![(Section::Ahead, 1)]));
}

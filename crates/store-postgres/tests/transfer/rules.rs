//! Rules for tenants that nobody has heard of yet.

use pointsman_core::RuleKind;
use pointsman_store::transfer::Section;
use pointsman_store_conformance::moving::Lair as _;
use pointsman_store_conformance::world::*;

use crate::house::connect;
use crate::lair::{Kind, Lair, Movers};

/// The tenant is forgotten, and the rule stands.
const AHEAD: &str = "
    DELETE FROM pointsman.rule_note;
    UPDATE pointsman.scheduling_rules SET created_at = 'infinity';
    DELETE FROM pointsman.tenant WHERE name = 'shop'";

#[tokio::test]
async fn a_rule_set_ahead_goes_along_and_holds_where_the_tenant_comes() {
    let movers = Movers::along(&[Kind::File]);
    let (from, to) = (Lair::empty(Kind::Database).await, Lair::empty(Kind::Database).await);
    let world = World::new(&movers, Plan::simple()).await;
    must(world.store.hold(world.rule(RuleKind::Pause, "index", Some("shop"))).await);
    movers.go_next_to(&from);
    let world = world.reopen().await;
    connect(from.url()).await.batch_execute(AHEAD).await.unwrap();
    movers.go_next_to(&to);
    let world = world.reopen().await;
    assert!(must(world.store.rules().await).is_empty(), "nobody has heard of the tenant");
    world.emit(event("record").tenant("shop")).await;
    let rules = must(world.store.rules().await);
    assert_eq!(rules.len(), 1);
    assert_eq!((rules[0].kind, rules[0].tenant.as_ref()), (RuleKind::Pause, Some(&tenant("shop"))));

    let report = from.move_to(&Lair::empty(Kind::File).await).await.unwrap();
    assert_eq!((report.differences(), report.left_behind()), (vec![], vec![(Section::Ahead, 1)]));
}

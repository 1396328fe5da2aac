//! Order ids are a tenant's own: what one tenant does never meets the orders of another.

use pointsman_core::fire::{Outcome, Overlap};
use pointsman_core::store::{NewOrder, OrderCommand, OrderRefused};

use crate::Harness;
use crate::fixture::*;

fn plan() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>done done")
}

/// `/x/y,1` of this tenant; its value names the tenant.
fn order_of(tenant: &str) -> NewOrder {
    new_order("/x/y,1").for_tenant(tenant).with_value(&format!("{tenant:?}"))
}

async fn value_of(world: &StoreFixture<'_>, tenant: &str) -> Option<String> {
    world.find_tenant_order(tenant, "/x/y,1").await.map(|view| view.order.value.as_str().to_owned())
}

pub async fn different_tenants_can_use_the_same_order_id(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    for tenant in ["shop", "default", "depot"] {
        world.add_order(order_of(tenant)).await;
    }
    let exists = OrderRefused::Exists(chain_path("/x/y"), order_key("/x/y,1").id);
    assert_eq!(world.try_add_order(order_of("shop")).await, Err(exists));
    let world = world.reopen().await;
    for tenant in ["shop", "default", "depot"] {
        assert_eq!(value_of(&world, tenant).await, Some(format!("{tenant:?}")));
    }
    assert_eq!(value_of(&world, "stranger").await, None);
    let mut ran: Vec<_> =
        world.claim(10).await.iter().map(|task| task.step().value.as_str().to_owned()).collect();
    ran.sort();
    assert_eq!(ran, ["\"default\"", "\"depot\"", "\"shop\""], "each has a task of its own");
}

pub async fn a_command_affects_only_the_order_of_its_tenant(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    for tenant in ["shop", "default"] {
        world.add_order(order_of(tenant)).await;
    }
    assert_eq!(world.command_tenant_order("shop", "/x/y,1", OrderCommand::Suspend).await, Ok(()));
    assert!(!world.read_order("/x/y,1").await.order.suspended);
    assert_eq!(world.command_tenant_order("shop", "/x/y,1", OrderCommand::Remove).await, Ok(()));
    assert_eq!(value_of(&world, "shop").await, None);
    assert_eq!(value_of(&world, "default").await.as_deref(), Some("\"default\""));
    let gone = Err(OrderRefused::NoSuchOrder(order_key("/x/y,1")));
    for command in [OrderCommand::Suspend, OrderCommand::Resume, OrderCommand::Remove, change_value_to("1")] {
        assert_eq!(world.command_tenant_order("shop", "/x/y,1", command).await, gone);
    }
    assert_eq!(describe_steps(&world.claim(10).await), ["/x/y,1 a"]);
}

pub async fn one_batch_can_add_the_same_order_id_for_several_tenants(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let exists = OrderRefused::Exists(chain_path("/x/y"), order_key("/x/y,1").id);
    let twice = vec![order_of("shop"), order_of("default"), order_of("shop")];
    assert_eq!(world.try_add_orders(twice).await, Err((2, exists)));
    assert!(world.list_orders("/").await.is_empty());
    assert_eq!(world.add_orders(vec![order_of("shop"), order_of("default")]).await.len(), 2);
}

/// Pages of one order each, so that every page ends between two tenants of a key or between two keys.
pub async fn orders_with_the_same_id_are_listed_by_tenant(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    for n in [10, 2, 1] {
        for tenant in ["shop", "default", "Depot"] {
            world.add_order(new_order(&format!("/x/y,{n}")).for_tenant(tenant)).await;
        }
    }
    let (mut after, mut listed) = (None, Vec::new());
    for _ in 0..9 {
        let page = expect_ok(world.store.orders(&path_filter("/x/y"), None, after, 1).await);
        listed.extend(page.orders.iter().map(|view| format!("{} {}", view.order.key.id, view.order.tenant)));
        after = page.next;
    }
    assert_eq!(after, None);
    let want =
        ["1", "10", "2"].map(|id| ["Depot", "default", "shop"].map(|of| format!("{id} {of}"))).concat();
    assert_eq!(listed, want);
    assert_eq!(world.list_orders("/x/y,10").await.len(), 3);
    assert_eq!(world.order_statistics("/x/y,10").await.total, 3);
}

pub async fn another_tenants_order_does_not_block_a_schedule(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    world.plan_daily_schedule("nightly").await;
    world.advance_clock(100);
    world.add_order(order_of("shop")).await;
    let firing = FiringBuilder::adding_order(order_of("default"))
        .with_overlap(Overlap::Skip)
        .build("nightly", world.now);
    assert_eq!(world.resolve_firing(firing).await.0.outcome, Outcome::Fired);
    assert_eq!(value_of(&world, "default").await.as_deref(), Some("\"default\""));
    assert_eq!(value_of(&world, "shop").await.as_deref(), Some("\"shop\""));
}

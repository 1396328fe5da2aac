//! Order ids are scoped to a tenant: one tenant's calls never affect the orders of another.

use pointsman_core::fire::{FireOutcome, OverlapPolicy};
use pointsman_core::store::{NewOrder, OrderCommand, OrderError};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>done done")
}

/// The order `/x/y,1` of this tenant; its value names the tenant.
fn tenant_order(tenant: &str) -> NewOrder {
    new_order("/x/y,1").for_tenant(tenant).with_value(&format!("{tenant:?}"))
}

async fn read_tenant_order_value(fixture: &StoreFixture<'_>, tenant: &str) -> Option<String> {
    fixture.find_tenant_order(tenant, "/x/y,1").await.map(|view| view.order.value.as_str().to_owned())
}

pub async fn different_tenants_can_use_the_same_order_id(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for tenant in ["shop", "default", "depot"] {
        fixture.add_order(tenant_order(tenant)).await;
    }
    let exists = OrderError::AlreadyExists(chain_path("/x/y"), order_key("/x/y,1").id);
    assert_eq!(fixture.try_add_order(tenant_order("shop")).await, Err(exists));
    let fixture = fixture.reopen().await;
    for tenant in ["shop", "default", "depot"] {
        assert_eq!(read_tenant_order_value(&fixture, tenant).await, Some(format!("{tenant:?}")));
    }
    assert_eq!(read_tenant_order_value(&fixture, "stranger").await, None);
    let mut ran: Vec<_> =
        fixture.claim(10).await.iter().map(|task| task.step_run().value.as_str().to_owned()).collect();
    ran.sort();
    assert_eq!(ran, ["\"default\"", "\"depot\"", "\"shop\""], "each order has its own task");
}

pub async fn a_command_affects_only_the_order_of_its_tenant(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for tenant in ["shop", "default"] {
        fixture.add_order(tenant_order(tenant)).await;
    }
    assert_eq!(fixture.send_tenant_order_command("shop", "/x/y,1", OrderCommand::Suspend).await, Ok(()));
    assert!(!fixture.read_order("/x/y,1").await.order.suspended);
    assert_eq!(fixture.send_tenant_order_command("shop", "/x/y,1", OrderCommand::Remove).await, Ok(()));
    assert_eq!(read_tenant_order_value(&fixture, "shop").await, None);
    assert_eq!(read_tenant_order_value(&fixture, "default").await.as_deref(), Some("\"default\""));
    let gone = Err(OrderError::NoSuchOrder(order_key("/x/y,1")));
    for command in
        [OrderCommand::Suspend, OrderCommand::Resume, OrderCommand::Remove, change_value_command("1")]
    {
        assert_eq!(fixture.send_tenant_order_command("shop", "/x/y,1", command).await, gone);
    }
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 a"]);
}

pub async fn one_batch_can_add_the_same_order_id_for_several_tenants(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let exists = OrderError::AlreadyExists(chain_path("/x/y"), order_key("/x/y,1").id);
    let twice = vec![tenant_order("shop"), tenant_order("default"), tenant_order("shop")];
    assert_eq!(fixture.try_add_orders(twice).await, Err((2, exists)));
    assert!(fixture.list_orders("/").await.is_empty());
    assert_eq!(fixture.add_orders(vec![tenant_order("shop"), tenant_order("default")]).await.len(), 2);
}

/// Reads pages of one order each, so that every page ends between two tenants of an id or between two ids.
pub async fn orders_with_the_same_id_are_sorted_by_tenant(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for n in [10, 2, 1] {
        for tenant in ["shop", "default", "Depot"] {
            fixture.add_order(new_order(&format!("/x/y,{n}")).for_tenant(tenant)).await;
        }
    }
    let (mut after, mut listed) = (None, Vec::new());
    for _ in 0..9 {
        let page = expect_ok(fixture.store.list_orders(&path_filter("/x/y"), None, after, 1).await);
        listed.extend(page.orders.iter().map(|view| format!("{} {}", view.order.key.id, view.order.tenant)));
        after = page.next_cursor;
    }
    assert_eq!(after, None);
    let want = ["1", "10", "2"]
        .map(|id| ["Depot", "default", "shop"].map(|tenant| format!("{id} {tenant}")))
        .concat();
    assert_eq!(listed, want);
    assert_eq!(fixture.list_orders("/x/y,10").await.len(), 3);
    assert_eq!(fixture.read_order_statistics("/x/y,10").await.total, 3);
}

pub async fn another_tenants_order_does_not_block_a_schedule(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.register_daily_schedule("nightly").await;
    fixture.advance_clock(100);
    fixture.add_order(tenant_order("shop")).await;
    let firing = FireRequestBuilder::adding_order(tenant_order("default"))
        .with_overlap(OverlapPolicy::Skip)
        .build("nightly", fixture.now);
    assert_eq!(fixture.record_fire(firing).await.0.outcome, FireOutcome::Fired);
    assert_eq!(read_tenant_order_value(&fixture, "default").await.as_deref(), Some("\"default\""));
    assert_eq!(read_tenant_order_value(&fixture, "shop").await.as_deref(), Some("\"shop\""));
}

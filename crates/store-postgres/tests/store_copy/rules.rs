//! Rules of tenants that the store does not know yet.

use pointsman_core::RuleKind;
use pointsman_store::store_copy::TableKind;
use pointsman_store_conformance::copy::StoreLocation as _;
use pointsman_store_conformance::fixture::*;

use crate::store_location::{CopyHarness, LocationKind, TestStoreLocation};
use crate::test_store::connect;

/// Deletes the tenant and keeps its rule.
const DELETE_TENANT_SQL: &str = "
    DELETE FROM pointsman.rule_author;
    UPDATE pointsman.scheduling_rules SET created_at = 'infinity';
    DELETE FROM pointsman.tenant WHERE name = 'shop'";

#[tokio::test]
async fn a_rule_of_an_unknown_tenant_is_copied_and_applies_once_the_tenant_exists() {
    let harness = CopyHarness::with_location_kinds(&[LocationKind::File]);
    let (from, to) = (
        TestStoreLocation::create_empty(LocationKind::Database).await,
        TestStoreLocation::create_empty(LocationKind::Database).await,
    );
    let fixture = StoreFixture::new(&harness, RegistrationBuilder::single_handler()).await;
    expect_ok(fixture.store.set_rule(fixture.new_rule(RuleKind::Pause, "index", Some("shop"))).await);
    harness.override_next_location(&from);
    let fixture = fixture.reopen().await;
    connect(from.database_url()).await.batch_execute(DELETE_TENANT_SQL).await.unwrap();
    harness.override_next_location(&to);
    let fixture = fixture.reopen().await;
    assert!(expect_ok(fixture.store.list_rules().await).is_empty(), "the store does not know the tenant");
    fixture.emit(new_event("record").for_tenant("shop")).await;
    let rules = expect_ok(fixture.store.list_rules().await);
    assert_eq!(rules.len(), 1);
    assert_eq!((rules[0].kind, rules[0].tenant.as_ref()), (RuleKind::Pause, Some(&tenant("shop"))));

    let report = from.copy_to(&TestStoreLocation::create_empty(LocationKind::File).await).await.unwrap();
    assert_eq!(
        (report.differing_tables(), report.uncopied_tables()),
        (vec![], vec![(TableKind::UnknownTenantRules, 1)])
    );
}

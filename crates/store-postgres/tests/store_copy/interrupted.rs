//! Copies that are interrupted and resumed.

use std::sync::Arc;

use pointsman_store_conformance::moving::Lair as _;
use pointsman_store_conformance::moving::cut::a_move_goes_on_behind_a_break;
use pointsman_store_conformance::moving::others::disturbed_at_the_first_page;
use pointsman_store_postgres::PgStoreCopy;
use pointsman_testing::Proxy;

use crate::store_location::{LocationKind, StoreLocation};
use crate::test_store::connect;

#[tokio::test]
async fn a_broken_connection_loses_nothing() {
    let database = StoreLocation::empty(LocationKind::Database).await;
    let (login, place) = database.url().split_once('@').unwrap();
    let (address, name) = place.split_once('/').unwrap();
    let proxy = Arc::new(Proxy::start(address.parse().unwrap()).unwrap());
    let (wire, url) = (proxy.clone(), format!("{login}@{}/{name}", proxy.address()));
    let over_the_wire = move || Box::new(PgStoreCopy::target(&url).unwrap()) as _;
    a_move_goes_on_behind_a_break(database, over_the_wire, move || wire.cut()).await;
}

#[tokio::test]
async fn a_rejected_second_copy_leaves_nothing_even_in_a_sequence() {
    let database: StoreLocation = disturbed_at_the_first_page().await;
    let client = connect(database.url()).await;
    let nodes = client.query_one("SELECT is_called FROM pointsman.node_id_seq", &[]).await;
    assert!(!nodes.unwrap().get::<_, bool>(0));
}

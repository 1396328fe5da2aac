//! Copies that are interrupted and resumed.

use std::sync::Arc;

use pointsman_store_conformance::copy::StoreLocation as _;
use pointsman_store_conformance::copy::concurrent_access::copy_into_concurrently_written_target;
use pointsman_store_conformance::copy::interrupted::a_copy_continues_after_a_broken_connection;
use pointsman_store_postgres::PgStoreCopy;
use pointsman_testing::FaultProxy;

use crate::store_location::{LocationKind, TestStoreLocation};
use crate::test_store::connect;

#[tokio::test]
async fn a_copy_into_a_database_continues_after_a_broken_connection() {
    let database = TestStoreLocation::create_empty(LocationKind::Database).await;
    let (login, location) = database.database_url().split_once('@').unwrap();
    let (address, name) = location.split_once('/').unwrap();
    let proxy = Arc::new(FaultProxy::start(address.parse().unwrap()).unwrap());
    let (proxy_handle, url) = (proxy.clone(), format!("{login}@{}/{name}", proxy.address()));
    let open_through_proxy = move || Box::new(PgStoreCopy::open_target(&url).unwrap()) as _;
    a_copy_continues_after_a_broken_connection(database, open_through_proxy, move || {
        proxy_handle.close_connections()
    })
    .await;
}

#[tokio::test]
async fn a_rejected_second_copy_does_not_advance_the_sequence_of_node_ids() {
    let database: TestStoreLocation = copy_into_concurrently_written_target().await;
    let client = connect(database.database_url()).await;
    let nodes = client.query_one("SELECT is_called FROM pointsman.node_id_seq", &[]).await;
    assert!(!nodes.unwrap().get::<_, bool>(0));
}

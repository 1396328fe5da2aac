//! A producer needs two grants, and can do nothing but emit with them.

use pointsman_testing::shared_postgres;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::test_store::{TestStore, connect, emit_in_sql, find_event_of_receipt};

/// Creates a role without privileges, and connects as that role.
async fn create_and_connect_producer(store_node: &TestStore, owner: &Client) -> (String, Client) {
    let role = format!("producer_{}", Uuid::new_v4().simple());
    owner.batch_execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'secret'")).await.unwrap();
    let database = store_node.url.rsplit('/').next().unwrap();
    let url = shared_postgres().unwrap().url(database);
    let (scheme, rest) = url.split_once("://").unwrap();
    let location = rest.rsplit_once('@').map_or(rest, |(_, location)| location);
    let client = connect(&format!("{scheme}://{role}:secret@{location}")).await;
    (role, client)
}

async fn sql_error_code(client: &Client, sql: &str) -> String {
    let error = client.batch_execute(sql).await.expect_err(sql);
    error.code().unwrap().code().to_string()
}

#[tokio::test]
async fn two_grants_allow_emit_and_nothing_else() {
    let store_node = TestStore::new().await;
    let owner = store_node.connect_client().await;
    let (role, client) = create_and_connect_producer(&store_node, &owner).await;
    let denied = "42501";
    assert_eq!(sql_error_code(&client, "SELECT pointsman.emit('a')").await, denied);
    owner.batch_execute(&format!("GRANT USAGE ON SCHEMA pointsman TO {role}")).await.unwrap();
    assert_eq!(sql_error_code(&client, "SELECT pointsman.emit('a')").await, denied);
    assert_eq!(sql_error_code(&client, "SELECT pointsman.event_of(gen_random_uuid())").await, denied);
    let grant = format!("GRANT EXECUTE ON FUNCTION pointsman.emit, pointsman.event_of TO {role}");
    owner.batch_execute(&grant).await.unwrap();

    let receipt =
        emit_in_sql(&client, "emit('a', 'k', '[1]', '{\"b\": \"c\"}', idempotency_key => 'once')").await;
    let event = store_node.wait_for_events(1).await.remove(0);
    assert_eq!(find_event_of_receipt(&client, receipt).await, Some(event.id));
    assert_eq!(sql_error_code(&client, "SELECT pointsman.emit('a b')").await, "22023");

    let tables =
        "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'pointsman'";
    for row in owner.query(tables, &[]).await.unwrap() {
        let table: String = row.get(0);
        for sql in ["TABLE ", "DELETE FROM ", "TRUNCATE ", "INSERT INTO "] {
            let rest = if sql.starts_with("INSERT") { " DEFAULT VALUES" } else { "" };
            assert_eq!(sql_error_code(&client, &format!("{sql}{table}{rest}")).await, denied, "{sql}{table}");
        }
    }
    for sql in [
        "TABLE pointsman.events",
        "SELECT last_value FROM pointsman.drainer_state",
        "SELECT setval('pointsman.drainer_state', 1)",
        "SELECT nextval('pointsman.outbox_number')",
        "SELECT pointsman.next_outbox_number()",
        "SELECT pointsman.notify_drainers()",
        "SELECT pointsman.raise_invalid_argument('a', 'b')",
        "SELECT pointsman.claim_idempotency_key('default', 'k', '', gen_random_uuid(), 0)",
        "CREATE TABLE pointsman.mine ()",
    ] {
        assert_eq!(sql_error_code(&client, sql).await, denied, "{sql}");
    }
}

#[tokio::test]
async fn objects_of_a_producer_do_not_shadow_the_schema() {
    let store_node = TestStore::new().await;
    let owner = store_node.connect_client().await;
    let (role, client) = create_and_connect_producer(&store_node, &owner).await;
    let grants = format!(
        "GRANT USAGE ON SCHEMA pointsman TO {role}; GRANT CREATE ON DATABASE {} TO {role};
         GRANT EXECUTE ON FUNCTION pointsman.emit, pointsman.event_of TO {role}",
        store_node.url.rsplit('/').next().unwrap()
    );
    owner.batch_execute(&grants).await.unwrap();
    client
        .batch_execute(
            "CREATE SCHEMA mine; SET search_path = mine, pg_temp, pg_catalog;
             CREATE FUNCTION mine.octet_length(text) RETURNS integer LANGUAGE sql AS 'SELECT 1/0';
             CREATE FUNCTION mine.pg_notify(text, text) RETURNS void LANGUAGE sql AS 'SELECT 1/0';
             CREATE FUNCTION pg_temp.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT NULL::bytea';
             CREATE TEMP TABLE outbox (n bigint); CREATE TEMP TABLE outbox_key (n bigint)",
        )
        .await
        .unwrap();
    emit_in_sql(&client, "emit('a', 'k', idempotency_key => 'once')").await;
    store_node.wait_for_events(1).await;
}

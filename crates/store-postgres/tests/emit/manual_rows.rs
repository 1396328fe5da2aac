//! Rows that were inserted manually do not block the outbox, whatever they contain.

use tokio_postgres::Client;

use crate::test_store::{TEST_TIMEOUT, TestStore, emit_in_sql};

/// Lists the rows that were set aside: type and reason.
async fn list_refused_rows(client: &Client) -> Vec<(String, String)> {
    let rows =
        client.query("SELECT type, reason FROM pointsman.outbox_refused ORDER BY n", &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

async fn wait_until_outbox_empty(client: &Client) {
    let polling = async {
        while client.query_one("SELECT count(*) FROM pointsman.outbox", &[]).await.unwrap().get::<_, i64>(0)
            > 0
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, polling).await.expect("the outbox is emptied");
}

#[tokio::test]
async fn a_row_with_an_invalid_idempotency_key_is_set_aside() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    // A text that compression does not make small enough for an index.
    let key = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 9000) i)";
    for key in [key, "repeat('k', 300000)", "''", "'é'"] {
        let row = "INSERT INTO pointsman.outbox (type, idempotency_key, digest)";
        client.batch_execute(&format!("{row} VALUES ('x', {key}, sha256('a'))")).await.unwrap();
    }
    emit_in_sql(&client, "emit('after')").await;
    assert_eq!(store_node.wait_for_events(1).await[0].event_type.as_str(), "after");
    let reason = "/idempotency_key: an idempotency key has 1 to 255 printable ASCII characters";
    assert_eq!(list_refused_rows(&client).await, vec![("x".to_owned(), reason.to_owned()); 4]);
}

#[tokio::test]
async fn a_row_that_the_database_rejects_is_set_aside_alone() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    client
        .batch_execute(
            "CREATE FUNCTION check_event() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF new.type = 'rejected' THEN RAISE EXCEPTION 'rejected by a trigger' USING ERRCODE = '22000'; END IF;
                 RETURN new;
             END $$;
             CREATE TRIGGER reject BEFORE INSERT ON pointsman.journal FOR EACH ROW EXECUTE FUNCTION check_event();
             BEGIN;
             SELECT pointsman.emit('first', 'k');
             SELECT pointsman.emit('rejected', 'k');
             INSERT INTO pointsman.outbox (type, key) VALUES ('second', 'k'), ('rejected', 'k');
             SELECT pointsman.emit('third', 'k');
             COMMIT",
        )
        .await
        .unwrap();
    let events = store_node.wait_for_events(3).await;
    let event_types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
    assert_eq!(event_types, ["first", "second", "third"]);
    assert_eq!(events[2].prev, Some(events[1].id));
    assert_eq!(
        list_refused_rows(&client).await,
        vec![("rejected".to_owned(), "rejected by a trigger".to_owned()); 2]
    );
}

#[tokio::test]
async fn rows_with_manually_assigned_numbers_are_drained_or_set_aside() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    let url = store_node.close().await;
    client
        .batch_execute(
            "INSERT INTO pointsman.outbox (n, type) VALUES (-9223372036854775808, 'least'), (0, 'none'), (-1, 'a b');
             SELECT setval('pointsman.outbox_number', 100); UPDATE pointsman.outbox_progress SET empty_up_to = 90;
             INSERT INTO pointsman.outbox (n, type) VALUES (90, 'settled'), (9223372036854775807, 'most')",
        )
        .await
        .unwrap();
    let store_node = TestStore::open(&url).await;
    let mut event_types: Vec<_> = store_node
        .wait_for_events(4)
        .await
        .iter()
        .map(|event| event.event_type.as_str().to_owned())
        .collect();
    event_types.sort();
    assert_eq!(event_types, ["least", "most", "none", "settled"]);
    wait_until_outbox_empty(&client).await;
    assert_eq!(list_refused_rows(&client).await.len(), 1);
}

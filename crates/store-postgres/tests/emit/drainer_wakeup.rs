//! Only the first emit after a node's drainer fell asleep notifies the node, because transactions that notify wait for
//! each other.

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, NoTls};

use crate::test_store::{TEST_TIMEOUT, TestStore, emit_in_sql};

#[tokio::test]
async fn only_the_first_emit_notifies_a_sleeping_node() {
    let store_node = TestStore::new().await;
    let client = store_node.connect_client().await;
    emit_in_sql(&client, "emit('a')").await;
    store_node.wait_for_events(1).await;
    let wait_until_asleep = async {
        let is_asleep_sql = "SELECT last_value = 1 FROM pointsman.drainer_state";
        while !client.query_one(is_asleep_sql, &[]).await.unwrap().get::<_, bool>(0) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TEST_TIMEOUT, wait_until_asleep).await.unwrap();
    let url = store_node.close().await;

    let (listener, mut connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let (sender, mut payloads) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(notification) = message {
                sender.send(notification.payload().to_string()).unwrap();
            }
        }
    });
    listener.batch_execute("LISTEN pointsman").await.unwrap();
    for _ in 0..2 {
        for _ in 0..50 {
            emit_in_sql(&client, "emit('a')").await;
        }
        client.batch_execute("SELECT setval('pointsman.drainer_state', 1)").await.unwrap();
    }
    client.batch_execute("NOTIFY pointsman, 'end'").await.unwrap();
    for payload in ["outbox", "outbox", "end"] {
        assert_eq!(timeout(TEST_TIMEOUT, payloads.recv()).await.unwrap().unwrap(), payload);
    }
}

//! Only the first emit after a node fell asleep notifies it, because transactions that notify wait for each other.

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
    let asleep = async {
        let bell = "SELECT last_value = 1 FROM pointsman.drainer_state";
        while !client.query_one(bell, &[]).await.unwrap().get::<_, bool>(0) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TEST_TIMEOUT, asleep).await.unwrap();
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
    for word in ["outbox", "outbox", "end"] {
        assert_eq!(timeout(TEST_TIMEOUT, payloads.recv()).await.unwrap().unwrap(), word);
    }
}

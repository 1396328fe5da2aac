//! Only the first who emits after a node went to sleep wakes it: transactions that notify wait for each other.

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, NoTls};

use crate::house::{House, PATIENCE, emit};

#[tokio::test]
async fn the_first_rings_and_the_others_do_not() {
    let house = House::new().await;
    let client = house.client().await;
    emit(&client, "emit('a')").await;
    house.events(1).await;
    let asleep = async {
        let bell = "SELECT last_value = 1 FROM pointsman.bell";
        while !client.query_one(bell, &[]).await.unwrap().get::<_, bool>(0) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, asleep).await.unwrap();
    let url = house.close().await;

    let (listener, mut connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(told) = message {
                tell.send(told.payload().to_string()).unwrap();
            }
        }
    });
    listener.batch_execute("LISTEN pointsman").await.unwrap();
    for _ in 0..2 {
        for _ in 0..50 {
            emit(&client, "emit('a')").await;
        }
        client.batch_execute("SELECT setval('pointsman.bell', 1)").await.unwrap();
    }
    client.batch_execute("NOTIFY pointsman, 'end'").await.unwrap();
    for word in ["outbox", "outbox", "end"] {
        assert_eq!(timeout(PATIENCE, told.recv()).await.unwrap().unwrap(), word);
    }
}

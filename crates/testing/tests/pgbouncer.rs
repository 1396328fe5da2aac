//! PgBouncer: it leads to the database, and a session is not a server's session.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

use pointsman_testing::{PgBouncer, Postgres, Settings};
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn backend(client: &Client) -> String {
    let answers = client.simple_query("SELECT pg_backend_pid()").await.unwrap();
    let row = answers.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    row.unwrap().to_owned()
}

#[tokio::test]
async fn clients_share_connections_between_transactions() {
    let postgres = Postgres::start(Settings::default()).unwrap();
    postgres.query("postgres", "CREATE DATABASE shop").unwrap();
    let bouncer = PgBouncer::start(&postgres, "shop").unwrap();
    let (one, two) = (connect(&bouncer.url().unwrap()).await, connect(&bouncer.url().unwrap()).await);
    assert_eq!(backend(&one).await, backend(&two).await);
    one.batch_execute("BEGIN").await.unwrap();
    assert_ne!(backend(&one).await, backend(&two).await);
}

//! PgBouncer: clients reach the database, and transactions of one client run on different connections to the server.

// All of this file is test code; clippy recognizes only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

use pointsman_testing::{PgBouncer, PostgresServer, PostgresSettings};
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Returns the pid of the PostgreSQL process that runs the client's query.
async fn backend_pid(client: &Client) -> String {
    let messages = client.simple_query("SELECT pg_backend_pid()").await.unwrap();
    let row = messages.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    row.unwrap().to_owned()
}

#[tokio::test]
async fn clients_share_connections_between_transactions() {
    let postgres = PostgresServer::start(PostgresSettings::default()).unwrap();
    postgres.query("postgres", "CREATE DATABASE shop").unwrap();
    let bouncer = PgBouncer::start(&postgres, "shop").unwrap();
    let (one, two) = (connect(&bouncer.url().unwrap()).await, connect(&bouncer.url().unwrap()).await);
    assert_eq!(backend_pid(&one).await, backend_pid(&two).await);
    one.batch_execute("BEGIN").await.unwrap();
    assert_ne!(backend_pid(&one).await, backend_pid(&two).await);
}

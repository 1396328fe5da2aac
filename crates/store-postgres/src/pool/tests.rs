use pointsman_testing::{FaultProxy, PostgresServer, PostgresSettings, shared_postgres};

use super::*;
use crate::rows::read_column;
use crate::session::query;

fn open_pool(url: &str, max_concurrent_reads: usize) -> SessionPool {
    SessionPool::new(Arc::new(Endpoint::parse(url).unwrap()), max_concurrent_reads)
}

/// Returns the process id of the server's backend for the connection that the pool uses next.
async fn read_backend_pid(pool: &SessionPool) -> StoreResult<i32> {
    pool.run_read_transaction((), |session, ()| {
        Box::pin(async move {
            let rows = session.query(query!("server/read_backend_pid"), &[]).await?;
            read_column(&rows[0], 0)
        })
    })
    .await
}

#[tokio::test]
async fn connections_are_reused() {
    let pool = open_pool(&shared_postgres().unwrap().create_database().unwrap(), 1);
    let first = read_backend_pid(&pool).await.unwrap();
    for _ in 0..10 {
        assert_eq!(read_backend_pid(&pool).await.unwrap(), first);
    }
}

#[tokio::test]
async fn a_read_transaction_sees_one_snapshot() {
    let url = shared_postgres().unwrap().create_database().unwrap();
    let pool = open_pool(&url, 2);
    let create_table_sql = "CREATE TABLE seen (n integer); INSERT INTO seen VALUES (1)";
    pool.run_single_statement((), move |session, ()| {
        Box::pin(async move { Ok(session.execute_batch(create_table_sql).await?) })
    })
    .await
    .unwrap();
    let other = pool.clone();
    let seen = pool.run_read_transaction(other, |session, other| {
        Box::pin(async move {
            let before = session.query_unprepared("SELECT count(*) FROM seen", &[]).await?;
            let insert_sql = "INSERT INTO seen VALUES (2)";
            other
                .run_single_statement((), move |session, ()| {
                    Box::pin(async move { Ok(session.execute_batch(insert_sql).await?) })
                })
                .await?;
            let after = session.query_unprepared("SELECT count(*) FROM seen", &[]).await?;
            Ok((read_column::<i64>(&before[0], 0)?, read_column::<i64>(&after[0], 0)?))
        })
    });
    assert_eq!(seen.await.unwrap(), (1, 1));
}

#[tokio::test]
async fn a_read_is_retried_on_a_new_connection_after_a_disconnect() {
    let server = PostgresServer::start(PostgresSettings::default()).unwrap();
    let url = server.create_database().unwrap();
    let database = url.rsplit('/').next().unwrap().to_string();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let pool = open_pool(&server.url_through_proxy(&proxy, &database).unwrap(), 1);
    let first = read_backend_pid(&pool).await.unwrap();
    proxy.close_connections();
    assert_ne!(read_backend_pid(&pool).await.unwrap(), first);
    let second = read_backend_pid(&pool).await.unwrap();
    server.query("postgres", &format!("SELECT pg_terminate_backend({second})")).unwrap();
    assert_ne!(read_backend_pid(&pool).await.unwrap(), second);
    proxy.set_refuse_connections(true).unwrap();
    proxy.close_connections();
    assert!(matches!(read_backend_pid(&pool).await, Err(StoreError::Unavailable(_))));
    proxy.set_refuse_connections(false).unwrap();
    read_backend_pid(&pool).await.unwrap();
}

#[tokio::test]
async fn a_canceled_read_leaves_no_open_transaction() {
    let url = shared_postgres().unwrap().create_database().unwrap();
    let pool = open_pool(&url, 1);
    let first = read_backend_pid(&pool).await.unwrap();
    let (started, has_started) = tokio::sync::oneshot::channel::<()>();
    let started = Mutex::new(Some(started));
    let slow = pool.run_read_transaction(started, |session, started| {
        Box::pin(async move {
            session.query(query!("server/read_backend_pid"), &[]).await?;
            if let Some(started) = started.lock().unwrap().take() {
                started.send(()).unwrap();
            }
            session.query_unprepared("SELECT pg_sleep(0.3)::text", &[]).await?;
            Ok(())
        })
    });
    tokio::select! {
        _ = slow => panic!("the read is not canceled"),
        _ = has_started => {}
    }
    assert_eq!(read_backend_pid(&pool).await.unwrap(), first, "the connection is reused");
    let _permit = pool.read_permits.acquire().await.unwrap();
    let state = format!("SELECT state FROM pg_stat_activity WHERE pid = {first}");
    let state = shared_postgres().unwrap().query("postgres", &state).unwrap();
    assert_eq!(state[0][0].as_deref(), Some("idle"), "the connection is in no transaction");
}

#[tokio::test]
async fn connecting_is_retried_while_the_server_has_too_many_connections() {
    let settings = PostgresSettings { max_connections: 6, ..PostgresSettings::default() };
    let server = PostgresServer::start(settings).unwrap();
    let url = server.create_database().unwrap();
    let role = "CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain";
    server.query("postgres", role).unwrap();
    let url = url.replacen("postgres@", "plain@", 1);
    let pool = open_pool(&url, 8);
    let endpoint = Endpoint::parse(&url).unwrap();
    let mut taken_connections = Vec::new();
    while let Ok(session) = endpoint.connect().await {
        taken_connections.push(session);
    }
    let waiting = tokio::spawn(async move { read_backend_pid(&pool).await });
    tokio::time::sleep(CONNECT_RETRY_DELAY * 3).await;
    assert!(!waiting.is_finished());
    drop(taken_connections);
    waiting.await.unwrap().unwrap();
}

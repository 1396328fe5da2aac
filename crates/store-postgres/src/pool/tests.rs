use pointsman_testing::{Postgres, Proxy, Settings, shared};

use super::*;
use crate::rows::get;
use crate::session::query;

fn pool(url: &str, readers: usize) -> Pool {
    Pool::new(Arc::new(Endpoint::parse(url).unwrap()), readers)
}

/// The number of the server's process that answers.
async fn backend(pool: &Pool) -> store::Result<i32> {
    pool.read((), |session, ()| {
        Box::pin(async move {
            let rows = session.query(query!("test/backend"), &[]).await?;
            get(&rows[0], 0)
        })
    })
    .await
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let pool = pool(&shared().unwrap().create_database().unwrap(), 1);
    let first = backend(&pool).await.unwrap();
    for _ in 0..10 {
        assert_eq!(backend(&pool).await.unwrap(), first);
    }
}

#[tokio::test]
async fn all_that_is_read_is_of_one_moment() {
    let url = shared().unwrap().create_database().unwrap();
    let pool = pool(&url, 2);
    let make = "CREATE TABLE seen (n integer); INSERT INTO seen VALUES (1)";
    pool.glance((), move |session, ()| Box::pin(async move { Ok(session.batch(make).await?) }))
        .await
        .unwrap();
    let other = pool.clone();
    let seen = pool.read(other, |session, other| {
        Box::pin(async move {
            let before = session.query(query!("test/seen"), &[]).await?;
            let add = "INSERT INTO seen VALUES (2)";
            other
                .glance((), move |session, ()| Box::pin(async move { Ok(session.batch(add).await?) }))
                .await?;
            let after = session.query(query!("test/seen"), &[]).await?;
            Ok((get::<i64>(&before[0], 0)?, get::<i64>(&after[0], 0)?))
        })
    });
    assert_eq!(seen.await.unwrap(), (1, 1));
}

#[tokio::test]
async fn a_read_on_a_connection_that_broke_is_made_again_on_another() {
    let server = Postgres::start(Settings::default()).unwrap();
    let url = server.create_database().unwrap();
    let database = url.rsplit('/').next().unwrap().to_string();
    let proxy = Proxy::start(server.address()).unwrap();
    let pool = pool(&server.url_through(&proxy, &database).unwrap(), 1);
    let first = backend(&pool).await.unwrap();
    proxy.cut();
    assert_ne!(backend(&pool).await.unwrap(), first);
    let second = backend(&pool).await.unwrap();
    server.query("postgres", &format!("SELECT pg_terminate_backend({second})")).unwrap();
    assert_ne!(backend(&pool).await.unwrap(), second);
    proxy.refuse(true).unwrap();
    proxy.cut();
    assert!(matches!(backend(&pool).await, Err(StoreError::Unavailable(_))));
    proxy.refuse(false).unwrap();
    backend(&pool).await.unwrap();
}

#[tokio::test]
async fn whoever_goes_away_leaves_no_transaction_behind() {
    let url = shared().unwrap().create_database().unwrap();
    let pool = pool(&url, 1);
    let first = backend(&pool).await.unwrap();
    let (begun, has_begun) = tokio::sync::oneshot::channel::<()>();
    let begun = Mutex::new(Some(begun));
    let slow = pool.read(begun, |session, begun| {
        Box::pin(async move {
            session.query(query!("test/backend"), &[]).await?;
            if let Some(begun) = begun.lock().unwrap().take() {
                begun.send(()).unwrap();
            }
            session.query(query!("test/nap"), &[]).await?;
            Ok(())
        })
    });
    tokio::select! {
        _ = slow => panic!("it should have been left half-way"),
        _ = has_begun => {}
    }
    assert_eq!(backend(&pool).await.unwrap(), first, "the connection was not thrown away");
    let _given_back = pool.permits.acquire().await.unwrap();
    let state = format!("SELECT state FROM pg_stat_activity WHERE pid = {first}");
    let state = shared().unwrap().query("postgres", &state).unwrap();
    assert_eq!(state[0][0].as_deref(), Some("idle"), "it stands in no transaction");
}

#[tokio::test]
async fn a_server_without_room_is_asked_again() {
    let settings = Settings { max_connections: 6, ..Settings::default() };
    let server = Postgres::start(settings).unwrap();
    let url = server.create_database().unwrap();
    let role = "CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain";
    server.query("postgres", role).unwrap();
    let url = url.replacen("postgres@", "plain@", 1);
    let others = pool(&url, 8);
    let endpoint = Endpoint::parse(&url).unwrap();
    let mut taken = Vec::new();
    while let Ok(session) = endpoint.connect().await {
        taken.push(session);
    }
    let waiting = tokio::spawn(async move { backend(&others).await });
    tokio::time::sleep(LOOK_AGAIN * 3).await;
    assert!(!waiting.is_finished());
    drop(taken);
    waiting.await.unwrap().unwrap();
}

//! What is not moved, and what is not moved to.

use std::time::SystemTime;

use pointsman_core::Timestamp;
use pointsman_core::store::{Registry, Store, StoreError};
use pointsman_store::transfer::{MoveError, NotReady, transfer, verify};
use pointsman_store_conformance::moving::Before;
use pointsman_store_conformance::world::*;
use pointsman_store_postgres::{PgMove, Postgres};
use pointsman_store_sqlite::{OpenError, Sqlite, SqliteMove};
use pointsman_testing::shared;

use crate::cut::{filled, move_pages};
use crate::house::{connect, emit};
use crate::lair::{Lair, Movers, apart};

async fn with_a_handler(lair: &Lair) {
    let store = lair.open(BEGINNING).await;
    must(store.register(Plan::simple().registration(), BEGINNING).await);
    store.close();
}

async fn cut_off(from: &Lair, to: &Lair) {
    let (from, to) = (from.clone(), to.clone());
    apart(move || move_pages(&from, &to, 3)).await.unwrap_err();
}

#[tokio::test]
async fn a_target_that_is_not_empty_says_what_is_in_it() {
    let movers = Movers::new();
    let source = filled(&movers).await;
    for target in [movers.file(), Lair::database().await] {
        with_a_handler(&target).await;
        let error = source.move_to(&target).await.unwrap_err();
        assert!(matches!(&error, MoveError::NotEmpty(what) if what.contains("handlers (1)")), "{error}");
    }
}

#[tokio::test]
async fn what_was_emitted_in_sql_makes_a_target_not_empty() {
    let movers = Movers::new();
    let (source, target) = (filled(&movers).await, Lair::database().await);
    emit(&connect(target.url()).await, "emit('a')").await;
    let error = source.move_to(&target).await.unwrap_err();
    assert!(matches!(&error, MoveError::NotEmpty(what) if what == "outbox (1)"), "{error}");
}

#[tokio::test]
async fn a_server_that_joins_at_the_target_is_noticed_before_anything_is_mixed() {
    let movers = Movers::new();
    let source = filled(&movers).await;
    for (at, joins) in [(1, true), (5, false)] {
        let target = Lair::database().await;
        let store = target.open(BEGINNING).await;
        let runtime = tokio::runtime::Handle::current();
        let (from, to, server) = (source.clone(), target.clone(), store.clone());
        let moved = apart(move || {
            let mut pages = 0;
            let page = move || {
                pages += 1;
                // Once the move has begun, a server that was there before finds only a part of a store.
                if pages == at {
                    let joined = runtime.block_on(server.join("meanwhile", BEGINNING));
                    assert_eq!(joined.is_ok(), joins, "{joined:?}");
                }
                Ok(())
            };
            let mut target = Before { target: to.target(), page };
            transfer(&mut *from.source(), &mut target, &mut |_| {})
        });
        let moved = moved.await;
        assert_eq!(matches!(moved, Err(MoveError::Disturbed)), joins, "{moved:?}");
        assert!(joins || moved.unwrap().differences().is_empty());
        store.close();
    }
}

#[tokio::test]
async fn what_does_not_go_with_what_is_there_does_not_go_later_either() {
    let movers = Movers::new();
    let (source, target) = (filled(&movers).await, Lair::database().await);
    let (runtime, url, to) = (tokio::runtime::Handle::current(), target.url().to_owned(), target.clone());
    let moved = apart(move || {
        let page = move || {
            let node = "INSERT INTO pointsman.node (id, name, joined, heard) OVERRIDING SYSTEM VALUE
                        VALUES (1, 'x', 0, 0) ON CONFLICT DO NOTHING";
            runtime.block_on(async { connect(&url).await.batch_execute(node).await.unwrap() });
            Ok(())
        };
        transfer(&mut *source.source(), &mut Before { target: to.target(), page }, &mut |_| {})
    });
    let error = moved.await.unwrap_err();
    assert!(
        matches!(&error, MoveError::Target(StoreError::Damaged(what)) if what.contains("node_pkey")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_move_that_has_not_ended_is_not_verified() {
    let movers = Movers::new();
    let (source, target) = (filled(&movers).await, Lair::database().await);
    source.move_to(&target).await.unwrap();
    let (from, to) = (source.clone(), target.clone());
    let verified = move || verify(&mut *from.source(), &mut *to.source(), &mut |_| {});
    assert!(apart(verified.clone()).await.unwrap().differences().is_empty());
    let note = "INSERT INTO pointsman.meta (name, text) VALUES ('move', 'a note')";
    connect(target.url()).await.batch_execute(note).await.unwrap();
    let error = apart(verified).await.unwrap_err();
    assert!(matches!(error, MoveError::Unended), "{error}");
    let back = apart(move || verify(&mut *target.source(), &mut *source.source(), &mut |_| {})).await;
    assert!(matches!(back, Err(MoveError::Part)), "{back:?}");
}

#[tokio::test]
async fn what_was_moved_is_not_moved_again() {
    let movers = Movers::new();
    let source = filled(&movers).await;
    for target in [movers.file(), Lair::database().await] {
        source.move_to(&target).await.unwrap();
        let error = source.move_to(&target).await.unwrap_err();
        assert!(matches!(error, MoveError::Done), "{error}");
    }
}

#[tokio::test]
async fn a_move_goes_on_from_the_same_source_only() {
    let movers = Movers::new();
    let (source, other) = (filled(&movers).await, movers.file());
    with_a_handler(&other).await;
    for target in [movers.file(), Lair::database().await] {
        cut_off(&source, &target).await;
        let error = other.move_to(&target).await.unwrap_err();
        assert!(matches!(error, MoveError::Another), "{error}");
    }
}

#[tokio::test]
async fn what_is_there_in_part_is_not_moved_on() {
    let movers = Movers::new();
    let source = filled(&movers).await;
    for part in [movers.file(), Lair::database().await] {
        cut_off(&source, &part).await;
        let error = part.move_to(&movers.file()).await.unwrap_err();
        assert!(matches!(error, MoveError::Part), "{error}");
    }
}

#[tokio::test]
async fn a_source_that_was_used_in_between_is_moved_anew() {
    let movers = Movers::new();
    let (source, target) = (filled(&movers).await, Lair::database().await);
    cut_off(&source, &target).await;
    let store = source.open(BEGINNING).await;
    must(store.join("again", BEGINNING).await);
    store.close();
    let error = source.move_to(&target).await.unwrap_err();
    assert!(matches!(error, MoveError::Changed), "{error}");
}

#[tokio::test]
async fn a_source_that_is_written_to_meanwhile_is_not_moved() {
    let movers = Movers::new();
    let (file, source, target) = (filled(&movers).await, Lair::database().await, movers.file());
    file.move_to(&source).await.unwrap();
    let store = source.open(BEGINNING).await;
    let (runtime, writer) = (tokio::runtime::Handle::current(), store.clone());
    let (from, to) = (source.clone(), target.clone());
    let moved = apart(move || {
        let mut written = false;
        let page = move || match std::mem::replace(&mut written, true) {
            true => Ok(()),
            false => runtime.block_on(writer.join("meanwhile", BEGINNING)).map(drop),
        };
        let mut target = Before { target: to.target(), page };
        transfer(&mut *from.source(), &mut target, &mut |_| {})
    });
    let error = moved.await.unwrap_err();
    assert!(matches!(error, MoveError::Written), "{error}");
    store.close();
    let Lair::File(path) = target else { panic!() };
    assert!(Sqlite::open(path, BEGINNING).is_err(), "it stays closed");
}

#[tokio::test]
async fn a_file_that_a_server_has_is_in_use() {
    let movers = Movers::new();
    let source = movers.file();
    with_a_handler(&source).await;
    let Lair::File(path) = &source else { panic!() };
    let store = source.open(BEGINNING).await;
    let error = SqliteMove::source(path).unwrap_err();
    assert!(matches!(error, NotReady::Unopened(OpenError::InUse { .. })), "{error}");
    store.close();
    drop(store);
    SqliteMove::source(path).unwrap();
}

#[tokio::test]
async fn a_database_that_a_server_has_is_in_use() {
    let database = Lair::database().await;
    let now = Timestamp::MIN.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap());
    let store = Postgres::open(database.url(), now).await.unwrap();
    let node = store.join("server-1", now).await.unwrap();
    for open in [PgMove::source, PgMove::target] {
        let url = database.url().to_owned();
        let error = apart(move || open(&url).unwrap_err()).await;
        assert!(matches!(&error, NotReady::InUse { nodes, .. } if nodes == "server-1"), "{error}");
        let told = error.to_string();
        assert!(told.contains("stop the servers first") && told.contains("gone a minute after"), "{error}");
    }
    store.leave(node, now).await.unwrap();
    store.close();
    for open in [PgMove::source, PgMove::target] {
        let url = database.url().to_owned();
        apart(move || drop(open(&url).unwrap())).await;
    }
}

#[tokio::test]
async fn where_there_is_no_store_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.db");
    assert!(matches!(SqliteMove::source(&path), Err(NotReady::NoStore(_))));
    assert!(!path.exists());
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    assert!(matches!(SqliteMove::source(&empty), Err(NotReady::NoStore(_))));
    let text = folder.path().join("text.db");
    std::fs::write(&text, "this is not a database, though it is long enough to be one".repeat(20)).unwrap();
    let error = SqliteMove::source(&text).unwrap_err();
    assert!(matches!(error, NotReady::Unopened(OpenError::NotADatabase { .. })), "{error}");

    let url = shared().unwrap().create_database().unwrap();
    let asked = url.clone();
    let error = apart(move || PgMove::source(&asked).unwrap_err()).await;
    assert!(matches!(error, NotReady::NoStore(_)), "{error}");
    let client = connect(&url).await;
    let schemas = client.query("SELECT FROM pg_namespace WHERE nspname = 'pointsman'", &[]).await.unwrap();
    assert!(schemas.is_empty());
    client.batch_execute("CREATE SCHEMA pointsman; CREATE TABLE pointsman.theirs (n integer)").await.unwrap();
    let asked = url.clone();
    let error = apart(move || PgMove::target(&asked).unwrap_err()).await;
    assert!(error.to_string().contains("is not Pointsman's"), "{error}");
}

#[test]
fn a_pooler_is_refused_without_asking_it() {
    let error = PgMove::source("postgres://ann:s3cret@127.0.0.1:1/bus?pooler=transaction").unwrap_err();
    assert!(matches!(error, NotReady::Pooled(_)), "{error}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

//! Where a store lies, and a harness that moves it to another kind of place at every restart.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store::transfer::{Movable, MoveError, Report, transfer};
use pointsman_store_conformance::Harness;
use pointsman_store_postgres::{PgMove, Postgres};
use pointsman_store_redis::{Redis, RedisMove};
use pointsman_store_sqlite::{Sqlite, SqliteMove};
use pointsman_testing::{RedisConnection, Reply, fresh_prefix, shared, shared_redis};
use tempfile::TempDir;

#[derive(Clone, Debug)]
pub(crate) enum Lair {
    File(PathBuf),
    /// A URL.
    Database(String),
    /// What keys begin with on the server that all tests share.
    Keys(String),
}

impl Lair {
    /// An empty database.
    pub(crate) fn database() -> Self {
        Self::Database(shared().unwrap().create_database().unwrap())
    }

    /// A prefix under which there is nothing.
    pub(crate) fn keys() -> Self {
        Self::Keys(fresh_prefix())
    }

    pub(crate) fn prefix(&self) -> &str {
        match self {
            Self::Keys(prefix) => prefix,
            Self::File(_) | Self::Database(_) => panic!("{self:?} is no Redis"),
        }
    }

    pub(crate) fn url(&self) -> String {
        shared_redis().unwrap().url_under(self.prefix())
    }

    /// A key of this store.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }

    pub(crate) async fn open(&self, now: Timestamp) -> Arc<dyn Store> {
        match self {
            Self::File(path) => Arc::new(Sqlite::open(path, now).unwrap()),
            Self::Database(url) => Arc::new(Postgres::open(url, now).await.unwrap()),
            Self::Keys(_) => Arc::new(Redis::open(&self.url(), now).await.unwrap()),
        }
    }

    pub(crate) fn source(&self) -> Box<dyn Movable> {
        match self {
            Self::File(path) => Box::new(SqliteMove::source(path).unwrap()),
            Self::Database(url) => Box::new(PgMove::source(url).unwrap()),
            Self::Keys(_) => Box::new(RedisMove::source(&self.url()).unwrap()),
        }
    }

    pub(crate) fn target(&self) -> Box<dyn Movable> {
        match self {
            Self::File(path) => Box::new(SqliteMove::target(path).unwrap()),
            Self::Database(url) => Box::new(PgMove::target(url).unwrap()),
            Self::Keys(_) => Box::new(RedisMove::target(&self.url()).unwrap()),
        }
    }

    pub(crate) async fn move_to(&self, to: &Self) -> Result<Report, MoveError> {
        let (from, to) = (self.clone(), to.clone());
        apart(move || transfer(&mut *from.source(), &mut *to.target(), &mut |_| {})).await
    }
}

/// A connection to the server that all tests share.
pub(crate) fn redis() -> RedisConnection {
    shared_redis().unwrap().connect().unwrap()
}

pub(crate) fn say(words: &[&str]) -> Reply {
    redis().command(words).unwrap()
}

/// Runs what waits for a server as no task may.
pub(crate) async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// A kind of place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    File,
    Database,
    Keys,
}

/// Places of its own. A store begins at the first kind of place, and goes to one of the next at every restart.
pub(crate) struct Movers {
    folder: TempDir,
    way: &'static [Kind],
    gone: Mutex<usize>,
    made: Mutex<usize>,
    now: Mutex<Option<(Lair, Arc<dyn Store>)>>,
}

impl Movers {
    pub(crate) fn along(way: &'static [Kind]) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            way,
            gone: Mutex::default(),
            made: Mutex::default(),
            now: Mutex::default(),
        }
    }

    pub(crate) fn file(&self) -> Lair {
        let mut made = self.made.lock().unwrap();
        *made += 1;
        Lair::File(self.folder.path().join(format!("{made}.db")))
    }

    pub(crate) fn place(&self, kind: Kind) -> Lair {
        match kind {
            Kind::File => self.file(),
            Kind::Database => Lair::database(),
            Kind::Keys => Lair::keys(),
        }
    }

    fn next(&self) -> Lair {
        let mut gone = self.gone.lock().unwrap();
        *gone += 1;
        self.place(self.way[*gone % self.way.len()])
    }

    /// Ends the store that was opened last, and answers where it lies.
    pub(crate) fn leave(&self) -> Lair {
        let (lair, store) = self.now.lock().unwrap().take().unwrap();
        store.close();
        lair
    }

    pub(crate) async fn settle(&self, lair: Lair, now: Timestamp) -> Arc<dyn Store> {
        let store = lair.open(now).await;
        self.now.lock().unwrap().replace((lair, store.clone()));
        store
    }
}

impl Drop for Movers {
    fn drop(&mut self) {
        if let Some((_, store)) = self.now.lock().unwrap().take() {
            store.close();
        }
    }
}

#[async_trait]
impl Harness for Movers {
    async fn fresh(&self, now: Timestamp) -> Arc<dyn Store> {
        self.settle(self.place(self.way[0]), now).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        let (from, to) = (self.leave(), self.next());
        let report = from.move_to(&to).await.unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!((report.differences(), report.left_behind()), (vec![], vec![]), "{from:?} to {to:?}");
        self.settle(to, now).await
    }
}

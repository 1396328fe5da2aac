//! Where a store lies, and a harness that moves it to the other kind at every restart.
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
use pointsman_store_sqlite::{Sqlite, SqliteMove};
use tempfile::TempDir;

use crate::common::lent::Lent;

#[derive(Clone)]
pub(crate) enum Lair {
    File(PathBuf),
    /// Its URL, and who has lent it.
    Database(String, Option<Arc<Lent>>),
}

impl Lair {
    /// An empty database.
    pub(crate) async fn database() -> Self {
        let lent = Lent::any().await;
        Self::Database(lent.url().into(), Some(Arc::new(lent)))
    }

    /// An empty one for what another test must not find there.
    pub(crate) fn own_database() -> Self {
        Self::Database(pointsman_testing::shared().unwrap().create_database().unwrap(), None)
    }

    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Database(url, _) => url,
            Self::File(path) => panic!("{path:?} is no database"),
        }
    }

    pub(crate) async fn open(&self, now: Timestamp) -> Arc<dyn Store> {
        match self {
            Self::File(path) => Arc::new(Sqlite::open(path, now).unwrap_or_else(|fault| panic!("{fault}"))),
            Self::Database(url, _) => {
                let store = Postgres::open(url, now).await;
                Arc::new(store.unwrap_or_else(|fault| panic!("{fault}")))
            }
        }
    }

    pub(crate) fn source(&self) -> Box<dyn Movable> {
        match self {
            Self::File(path) => Box::new(SqliteMove::source(path).unwrap()),
            Self::Database(url, _) => Box::new(PgMove::source(url).unwrap()),
        }
    }

    pub(crate) fn target(&self) -> Box<dyn Movable> {
        match self {
            Self::File(path) => Box::new(SqliteMove::target(path).unwrap()),
            Self::Database(url, _) => Box::new(PgMove::target(url).unwrap()),
        }
    }

    pub(crate) async fn move_to(&self, to: &Self) -> Result<Report, MoveError> {
        let (from, to) = (self.clone(), to.clone());
        apart(move || transfer(&mut *from.source(), &mut *to.target(), &mut |_| {})).await
    }
}

/// Runs what waits for a database as no task may.
pub(crate) async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Files and databases of its own, given back with it. Stores begin in a file.
pub(crate) struct Movers {
    folder: TempDir,
    made: Mutex<usize>,
    now: Mutex<Option<(Lair, Arc<dyn Store>)>>,
    /// Where to go next, if not anywhere.
    next: Mutex<Option<Lair>>,
}

impl Movers {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            made: Mutex::default(),
            now: Mutex::default(),
            next: Mutex::default(),
        }
    }

    pub(crate) fn file(&self) -> Lair {
        let mut made = self.made.lock().expect("nobody has panicked");
        *made += 1;
        Lair::File(self.folder.path().join(format!("{made}.db")))
    }

    /// The next move goes there.
    pub(crate) fn go_next_to(&self, lair: &Lair) {
        self.next.lock().expect("nobody has panicked").replace(lair.clone());
    }

    /// Ends the store that was opened last, and answers where it lies.
    pub(crate) fn leave(&self) -> Lair {
        let (lair, store) = self.now.lock().expect("nobody has panicked").take().expect("one was opened");
        store.close();
        lair
    }

    pub(crate) async fn settle(&self, lair: Lair, now: Timestamp) -> Arc<dyn Store> {
        let store = lair.open(now).await;
        self.now.lock().expect("nobody has panicked").replace((lair, store.clone()));
        store
    }
}

/// Nobody writes to a database any more when it is given back.
impl Drop for Movers {
    fn drop(&mut self) {
        if let Some((_, store)) = self.now.lock().expect("nobody has panicked").take() {
            store.close();
        }
    }
}

#[async_trait]
impl Harness for Movers {
    async fn fresh(&self, now: Timestamp) -> Arc<dyn Store> {
        self.settle(self.file(), now).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        let from = self.leave();
        let chosen = self.next.lock().expect("nobody has panicked").take();
        let to = match (chosen, &from) {
            (Some(chosen), _) => chosen,
            (None, Lair::File(_)) => Lair::database().await,
            (None, Lair::Database(..)) => self.file(),
        };
        let report = from.move_to(&to).await.unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!((report.differences(), report.left_behind()), (vec![], vec![]));
        self.settle(to, now).await
    }
}

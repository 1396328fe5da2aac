//! The embedded store passes the conformance suite of all stores, on real files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_sqlite::{OpenError, Sqlite, SqliteStore};
use tempfile::TempDir;

/// The files of one test, in a folder that is removed after the test. Reopening opens the file that was created last.
struct SqliteFiles {
    folder: TempDir,
    created_count: AtomicU64,
}

impl SqliteFiles {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("cannot create a folder for the files"),
            created_count: AtomicU64::new(0),
        }
    }

    fn open(&self, number: u64, now: Timestamp) -> Result<SqliteStore, OpenError> {
        Sqlite::open(self.folder.path().join(format!("{number}.db")), now)
    }
}

#[async_trait]
impl Harness for SqliteFiles {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        let number = self.created_count.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(self.open(number, now).expect("cannot open a new file"))
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        // The lock is released when the writer's thread ends. Nothing reports that, so opening is tried repeatedly.
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match self.open(self.created_count.load(Ordering::Relaxed), now) {
                Ok(store) => return Arc::new(store),
                Err(OpenError::InUse { .. }) if Instant::now() < deadline => tokio::task::yield_now().await,
                Err(fault) => panic!("cannot open the file again: {fault}"),
            }
        }
    }
}

pointsman_store_conformance::suite!(SqliteFiles::new());

//! The embedded store passes the one suite, on real files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store_conformance::Harness;
use pointsman_store_sqlite::{OpenError, Sqlite, SqliteStore};
use tempfile::TempDir;

/// Files of its own, removed with it. The last one made is the one that is reopened.
struct Files {
    folder: TempDir,
    made: AtomicU64,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for the files"), made: AtomicU64::new(0) }
    }

    fn open(&self, number: u64, now: Timestamp) -> Result<SqliteStore, OpenError> {
        Sqlite::open(self.folder.path().join(format!("{number}.db")), now)
    }
}

#[async_trait]
impl Harness for Files {
    async fn fresh(&self, now: Timestamp) -> Arc<dyn Store> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(self.open(number, now).expect("a new file opens"))
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        // The file is free as soon as the writer's thread has ended, which nobody tells.
        let patience = Instant::now() + Duration::from_secs(30);
        loop {
            match self.open(self.made.load(Ordering::Relaxed), now) {
                Ok(store) => return Arc::new(store),
                Err(OpenError::InUse { .. }) if Instant::now() < patience => tokio::task::yield_now().await,
                Err(fault) => panic!("the file opens again: {fault}"),
            }
        }
    }
}

pointsman_store_conformance::suite!(Files::new());

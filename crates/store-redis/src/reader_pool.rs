//! Pool of readers, each with a connection. Their reads see the last commit, and wait for writers only if nodes commit all
//! the time.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pointsman_core::store::{StoreError, StoreResult};
use pointsman_store::ReadOutageLog;
use pointsman_store::error::TableResult;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::connect::Endpoint;
use crate::error::{is_connection_fault, store_error_from_fault};
use crate::overlay::TransactionOverlay;
use crate::reader::SnapshotReader;
use crate::store_state::StoreState;

/// Maximum number of concurrent reads.
const MAX_CONCURRENT_READS: usize = 4;
/// Maximum number of concurrent scans, which are long reads: less than all reads, so that others can run.
const MAX_CONCURRENT_SCANS: usize = 2;
/// Time to wait for a permit, after which a read fails.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub(crate) struct ReaderPool {
    endpoint: Arc<Endpoint>,
    idle_readers: Arc<Mutex<Vec<SnapshotReader>>>,
    read_permits: Arc<Semaphore>,
    scan_permits: Arc<Semaphore>,
    read_outage_log: Arc<ReadOutageLog>,
}

impl ReaderPool {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        let read_permits = Arc::new(Semaphore::new(MAX_CONCURRENT_READS));
        let scan_permits = Arc::new(Semaphore::new(MAX_CONCURRENT_SCANS));
        Self {
            endpoint,
            idle_readers: Arc::default(),
            read_permits,
            scan_permits,
            read_outage_log: Arc::default(),
        }
    }

    /// Runs `read` on a consistent snapshot. `read` is repeated if a node commits meanwhile, or if the connection breaks.
    pub(crate) async fn read_snapshot<T: Send + 'static>(
        &self,
        read: impl Fn(&mut TransactionOverlay, &StoreState) -> TableResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.read_without_snapshot(move |reader| reader.read_snapshot(&read)).await
    }

    /// Runs a `read` that needs no consistent snapshot, or ensures consistency itself. `read` is repeated if the
    /// connection breaks.
    pub(crate) async fn read_without_snapshot<T: Send + 'static>(
        &self,
        read: impl Fn(&mut SnapshotReader) -> TableResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let result = self.read_on_blocking_thread(read).await;
        self.read_outage_log.record_read_result(&result);
        result
    }

    /// Runs the read on a blocking thread.
    async fn read_on_blocking_thread<T: Send + 'static>(
        &self,
        read: impl Fn(&mut SnapshotReader) -> TableResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let permit = self.acquire_permit().await?;
        let pool = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut reader = pool.take_reader();
            let result = pool.read_with_retry(&mut reader, read);
            pool.return_reader(reader);
            result
        });
        match read.await {
            Ok(result) => result.map_err(store_error_from_fault),
            Err(error) => Err(StoreError::unavailable(error)),
        }
    }

    /// Like [`Self::read_snapshot`] for long scans, which never use all permits.
    pub(crate) async fn read_snapshot_as_long_scan<T: Send + 'static>(
        &self,
        read: impl Fn(&mut TransactionOverlay, &StoreState) -> TableResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let _scan_permit = self.scan_permits.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        self.read_snapshot(read).await
    }

    async fn acquire_permit(&self) -> StoreResult<OwnedSemaphorePermit> {
        match timeout(PERMIT_TIMEOUT, self.read_permits.clone().acquire_owned()).await {
            Ok(permit) => permit.map_err(|_| StoreError::Closed),
            Err(_) => {
                let reason = format!("no read connection became free within {} s", PERMIT_TIMEOUT.as_secs());
                Err(StoreError::unavailable(reason))
            }
        }
    }

    /// Repeats the read once on a new connection, because an idle one may be closed.
    fn read_with_retry<T>(
        &self,
        reader: &mut SnapshotReader,
        read: impl Fn(&mut SnapshotReader) -> TableResult<T>,
    ) -> TableResult<T> {
        let attempt = |reader: &mut SnapshotReader| {
            reader.overlay.clear();
            read(reader)
        };
        reader.connect_if_needed()?;
        match attempt(reader) {
            Err(fault) if is_connection_fault(&fault) => {
                reader.overlay.connection.disconnect();
                reader.connect_if_needed()?;
                attempt(reader)
            }
            result => result,
        }
    }

    fn take_reader(&self) -> SnapshotReader {
        let idle = self.lock_idle_readers().pop();
        idle.unwrap_or_else(|| SnapshotReader::new(self.endpoint.clone()))
    }

    /// Returns a reader to the pool with a cleared cache, unless the store is closed.
    fn return_reader(&self, mut reader: SnapshotReader) {
        reader.overlay.clear();
        let mut idle = self.lock_idle_readers();
        if !self.read_permits.is_closed() {
            idle.push(reader);
        }
    }

    pub(crate) fn close(&self) {
        self.read_permits.close();
        self.scan_permits.close();
        self.lock_idle_readers().clear();
    }

    fn lock_idle_readers(&self) -> MutexGuard<'_, Vec<SnapshotReader>> {
        self.idle_readers.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use pointsman_core::Timestamp;
    use pointsman_core::store::Store as _;
    use pointsman_testing::{shared_redis, unique_key_prefix};

    use super::*;

    /// Long listings never use all permits.
    #[tokio::test(flavor = "multi_thread")]
    async fn scans_leave_permits_for_other_reads() {
        let url = shared_redis().unwrap().url_with_prefix(&unique_key_prefix());
        let store = crate::Redis::open(&url, Timestamp::MIN).await.unwrap();
        let pool = ReaderPool::new(Arc::new(Endpoint::parse(&url).unwrap()));
        let (started_sender, started) = mpsc::channel();
        let (gate_sender, gate) = mpsc::channel::<()>();
        let (gate, running) = (Arc::new(Mutex::new(gate)), Arc::new(AtomicUsize::new(0)));
        let scans: Vec<_> = (0..3 * MAX_CONCURRENT_READS)
            .map(|_| {
                let (pool, started_sender, gate) = (pool.clone(), started_sender.clone(), gate.clone());
                let running = running.clone();
                tokio::spawn(async move {
                    let scan = move |_: &mut TransactionOverlay, _: &StoreState| {
                        running.fetch_add(1, Ordering::SeqCst);
                        let _ = started_sender.send(());
                        let _ = gate.lock().unwrap().recv();
                        Ok(())
                    };
                    pool.read_snapshot_as_long_scan(scan).await
                })
            })
            .collect();
        (0..MAX_CONCURRENT_SCANS).for_each(|_| started.recv().unwrap());
        for _ in 0..3 * MAX_CONCURRENT_READS {
            pool.read_snapshot(|_, _| Ok(())).await.unwrap();
        }
        assert_eq!(running.load(Ordering::SeqCst), MAX_CONCURRENT_SCANS, "no more scans have started");
        drop(gate_sender);
        for scan in scans {
            scan.await.unwrap().unwrap();
        }
        store.close();
    }
}

//! Connections that read. They see the last commit, and do not wait for writers unless these never rest.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pointsman_core::store::{self, StoreError};
use pointsman_store::Readable;
use pointsman_store::error::Result;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::connect::Endpoint;
use crate::error::{explain, is_broken};
use crate::overlay::TransactionOverlay;
use crate::reader::Reader;
use crate::standing::Standing;

/// So many reads at most run at a time.
const READERS: usize = 4;
/// So many of them may be such that look at much.
const WALKS: usize = 2;
/// How long a read waits for its place among them before the server is taken for dead.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub(crate) struct Readers {
    endpoint: Arc<Endpoint>,
    idle: Arc<Mutex<Vec<Reader>>>,
    permits: Arc<Semaphore>,
    walks: Arc<Semaphore>,
    readable: Arc<Readable>,
}

impl Readers {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        let permits = Arc::new(Semaphore::new(READERS));
        let walks = Arc::new(Semaphore::new(WALKS));
        Self { endpoint, idle: Arc::default(), permits, walks, readable: Arc::default() }
    }

    /// Runs `read`: all that it sees is of one moment. It is run again if somebody writes meanwhile, or if its connection
    /// breaks.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl Fn(&TransactionOverlay, &Standing) -> Result<T> + Send + 'static,
    ) -> store::Result<T> {
        self.glance(move |reader| reader.moment(&read)).await
    }

    /// Runs a `read` that sees to it by itself that what it says was so at one moment. It is run again if its connection
    /// breaks.
    pub(crate) async fn glance<T: Send + 'static>(
        &self,
        read: impl Fn(&Reader) -> Result<T> + Send + 'static,
    ) -> store::Result<T> {
        let answer = self.beside(read).await;
        self.readable.note(&answer);
        answer
    }

    /// Reads on a thread that may wait.
    async fn beside<T: Send + 'static>(
        &self,
        read: impl Fn(&Reader) -> Result<T> + Send + 'static,
    ) -> store::Result<T> {
        let permit = self.permit().await?;
        let readers = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let reader = readers.take();
            let result = readers.read(&reader, read);
            readers.give_back(reader);
            result
        });
        match read.await {
            Ok(result) => result.map_err(|fault| explain(&fault)),
            Err(error) => Err(StoreError::Unavailable(error.to_string())),
        }
    }

    /// The same for one that may look at much: such reads never take all places.
    pub(crate) async fn walk<T: Send + 'static>(
        &self,
        read: impl Fn(&TransactionOverlay, &Standing) -> Result<T> + Send + 'static,
    ) -> store::Result<T> {
        let _walk = self.walks.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        self.run(read).await
    }

    async fn permit(&self) -> store::Result<OwnedSemaphorePermit> {
        match timeout(PATIENCE, self.permits.clone().acquire_owned()).await {
            Ok(permit) => permit.map_err(|_| StoreError::Closed),
            Err(_) => {
                let why = format!("no other read has ended for {} s", PATIENCE.as_secs());
                Err(StoreError::Unavailable(why))
            }
        }
    }

    /// A connection may have died while nobody used it; another one may serve.
    fn read<T>(&self, reader: &Reader, read: impl Fn(&Reader) -> Result<T>) -> Result<T> {
        let attempt = || {
            reader.overlay.clear();
            read(reader)
        };
        reader.open()?;
        match attempt() {
            Err(fault) if is_broken(&fault) => {
                reader.overlay.connection.disconnect();
                reader.open()?;
                attempt()
            }
            result => result,
        }
    }

    fn take(&self) -> Reader {
        let idle = self.idle().pop();
        idle.unwrap_or_else(|| Reader::new(self.endpoint.clone()))
    }

    /// Nobody of a closed store reads again. What was seen need not be remembered until then.
    fn give_back(&self, reader: Reader) {
        reader.overlay.clear();
        let mut idle = self.idle();
        if !self.permits.is_closed() {
            idle.push(reader);
        }
    }

    pub(crate) fn close(&self) {
        self.permits.close();
        self.walks.close();
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.idle.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use pointsman_core::Timestamp;
    use pointsman_core::store::Store as _;
    use pointsman_testing::{fresh_prefix, shared_redis};

    use super::*;

    /// However many long listings there are, others find a place.
    #[tokio::test(flavor = "multi_thread")]
    async fn those_who_look_at_much_leave_room_for_others() {
        let url = shared_redis().unwrap().url_under(&fresh_prefix());
        let store = crate::Redis::open(&url, Timestamp::MIN).await.unwrap();
        let readers = Readers::new(Arc::new(Endpoint::parse(&url).unwrap()));
        let (begun, told) = mpsc::channel();
        let (closed, gate) = mpsc::channel::<()>();
        let (gate, running) = (Arc::new(Mutex::new(gate)), Arc::new(AtomicUsize::new(0)));
        let walks: Vec<_> = (0..3 * READERS)
            .map(|_| {
                let (readers, begun, gate) = (readers.clone(), begun.clone(), gate.clone());
                let running = running.clone();
                tokio::spawn(async move {
                    let walk = move |_: &TransactionOverlay, _: &Standing| {
                        running.fetch_add(1, Ordering::SeqCst);
                        let _ = begun.send(());
                        let _ = gate.lock().unwrap().recv();
                        Ok(())
                    };
                    readers.walk(walk).await
                })
            })
            .collect();
        (0..WALKS).for_each(|_| told.recv().unwrap());
        for _ in 0..3 * READERS {
            readers.run(|_, _| Ok(())).await.unwrap();
        }
        assert_eq!(running.load(Ordering::SeqCst), WALKS, "no more of them have begun");
        drop(closed);
        for walk in walks {
            walk.await.unwrap().unwrap();
        }
        store.close();
    }
}

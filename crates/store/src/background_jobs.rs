//! Background futures of a store that several nodes share. They run until the store closes.

use std::sync::Mutex;

use tokio::task::JoinHandle;

/// Handles of the background futures of a store.
#[derive(Debug, Default)]
pub struct BackgroundJobs(Mutex<Vec<JoinHandle<()>>>);

impl BackgroundJobs {
    pub fn add_handles(&self, handles: impl IntoIterator<Item = JoinHandle<()>>) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).extend(handles);
    }

    pub fn abort_all(&self) {
        let handles = std::mem::take(&mut *self.0.lock().unwrap_or_else(|e| e.into_inner()));
        handles.iter().for_each(JoinHandle::abort);
    }
}

/// A store that is dropped without being closed aborts its background futures too.
impl Drop for BackgroundJobs {
    fn drop(&mut self) {
        self.abort_all();
    }
}

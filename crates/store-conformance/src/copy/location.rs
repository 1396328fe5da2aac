//! The location of a store, independent of its kind.

use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_store::store_copy::{
    ComparisonReport, CopyEndpoint, CopyError, TableKind, compare_stores, copy_store, verify_copy,
};

use super::page_hook::{copy_at_most_pages_then_fail, copy_with_hook_before_page};
use super::{CopyOnReopenHarness, fill_with_sample_data, sample_registration};
use crate::fixture::StoreFixture;

/// The error of a store that cannot be opened.
pub type LocationOpenError = Box<dyn Error + Send + Sync>;

/// A location that a store can be copied to and from.
#[async_trait]
pub trait StoreLocation: Clone + Debug + Send + Sync + 'static {
    /// The kinds of locations.
    type Kind: Copy + Debug + Send + Sync;
    /// The tested kind. Several servers can open such a store at the same time.
    const TESTED_KIND: Self::Kind;
    /// Another kind. Only one server can open such a store at a time.
    const OTHER_KIND: Self::Kind;

    /// Creates an empty location of this kind that nothing else uses.
    async fn create_empty(kind: Self::Kind) -> Self;

    async fn try_open(&self, now: Timestamp) -> Result<Arc<dyn Store>, LocationOpenError>;

    /// Opens the location as a copy source. Blocks, as do all calls of the returned value: see [`run_blocking`].
    fn try_open_source(&self) -> Result<Box<dyn CopyEndpoint>, LocationOpenError>;

    /// Opens the location as a copy target. Blocks, as do all calls of the returned value.
    fn try_open_target(&self) -> Result<Box<dyn CopyEndpoint>, LocationOpenError>;

    async fn open(&self, now: Timestamp) -> Arc<dyn Store> {
        self.try_open(now).await.unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    fn open_source(&self) -> Box<dyn CopyEndpoint> {
        self.try_open_source().unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    fn open_target(&self) -> Box<dyn CopyEndpoint> {
        self.try_open_target().unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    /// Creates a location of this kind with a closed store that contains data of every kind.
    async fn create_with_sample_data(kind: Self::Kind) -> Self {
        let harness = CopyOnReopenHarness::<Self>::with_location_kinds(&[kind]);
        let mut fixture = StoreFixture::new(&harness, sample_registration()).await;
        fill_with_sample_data(&mut fixture).await;
        drop(fixture);
        harness.close_current_store()
    }

    /// Copies this store into the one at `to`, and compares the two.
    async fn copy_to(&self, to: &Self) -> Result<ComparisonReport, CopyError> {
        let (from, to) = (self.clone(), to.clone());
        run_blocking(move || copy_store(&mut *from.open_source(), &mut *to.open_target(), &mut |_| {})).await
    }

    /// Copies at most `pages` pages, then fails as if the connection broke.
    async fn copy_at_most_pages_to(&self, to: &Self, pages: usize) -> Result<ComparisonReport, CopyError> {
        let (from, to) = (self.clone(), to.clone());
        run_blocking(move || copy_at_most_pages_then_fail(&mut *from.open_source(), to.open_target(), pages))
            .await
    }

    /// Copies and runs `action` before the given page (the first is 1) is written.
    async fn copy_to_with_hook_before_page(
        &self,
        to: &Self,
        page: usize,
        action: impl FnOnce() + Send + 'static,
    ) -> Result<ComparisonReport, CopyError> {
        let (from, to) = (self.clone(), to.clone());
        run_blocking(move || {
            copy_with_hook_before_page(&mut *from.open_source(), to.open_target(), page, action)
        })
        .await
    }

    /// Compares this store with its finished copy at `other`.
    async fn verify_copy(&self, other: &Self) -> Result<ComparisonReport, CopyError> {
        let (one, other) = (self.clone(), other.clone());
        run_blocking(move || verify_copy(&mut *one.open_source(), &mut *other.open_source(), &mut |_| {}))
            .await
    }

    /// Returns the tables that differ from those of another location.
    async fn find_differing_tables(&self, other: &Self) -> Vec<TableKind> {
        let (one, other) = (self.clone(), other.clone());
        let compared = run_blocking(move || {
            compare_stores(&mut *one.open_source(), &mut *other.open_source(), &mut |_| {})
        })
        .await;
        compared.unwrap_or_else(|error| panic!("{error:?}")).differing_tables()
    }
}

/// Runs blocking work outside the async runtime's threads.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("the work has not panicked")
}

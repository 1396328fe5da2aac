//! Document 002, as one sees it who knows nothing else: the tasks of sources in plain keys.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod history;
mod logs;
mod task_lifecycle;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::store::Store;
use pointsman_core::{TaskId, Timestamp};
use pointsman_store_conformance::Harness;
use pointsman_store_redis::Redis;

use common::redis_location::{RawClient, RedisLocation};

/// Where a story is told with the suite's words, and looked at in plain commands.
struct SyncTaskHarness(RedisLocation);

impl SyncTaskHarness {
    fn new() -> Self {
        Self(RedisLocation::on_shared_server())
    }

    fn reader(&self) -> SyncTaskReader {
        SyncTaskReader(self.0.connect())
    }
}

#[async_trait]
impl Harness for SyncTaskHarness {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        Arc::new(Redis::open(&self.0.url, now).await.unwrap())
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        drop(store);
        self.open_empty(now).await
    }
}

/// Somebody who has read the document.
struct SyncTaskReader(RawClient);

impl SyncTaskReader {
    /// The tasks that wait, the next one last; each with its score.
    fn read_queue(&mut self) -> Vec<(String, i64)> {
        self.read_scored_members(":sync_tasks_priority_queue")
    }

    /// A pair's tasks, the oldest first; each with its score.
    fn read_history(&mut self, source: &str, collection: &str) -> Vec<(String, i64)> {
        self.read_scored_members(&format!(":sync_tasks_index:source#{source}:collection#{collection}"))
    }

    fn read_scored_members(&mut self, key: &str) -> Vec<(String, i64)> {
        let told = self.0.text_replies(&["ZRANGE", key, "0", "-1", "WITHSCORES"]);
        told.chunks(2).map(|pair| (pair[0].clone(), pair[1].parse::<f64>().unwrap() as i64)).collect()
    }

    /// The fields of a task.
    fn read_task(&mut self, id: &TaskId) -> BTreeMap<String, String> {
        let told = self.0.text_replies(&["HGETALL", &format!(":sync_tasks#{id}")]);
        told.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    }

    /// Status, and when it was started and finished.
    fn read_status(&mut self, id: &TaskId) -> [String; 3] {
        let task = self.read_task(id);
        ["status", "started_at", "finished_at"].map(|field| task[field].clone())
    }
}

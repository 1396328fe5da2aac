//! Tasks of sources in the keys of document 002.
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

/// A store for fixtures of the conformance suite, whose keys are read with plain commands.
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

/// Reads the keys of document 002.
struct SyncTaskReader(RawClient);

impl SyncTaskReader {
    /// Reads the waiting tasks with their scores; the next one is the last.
    fn read_queue(&mut self) -> Vec<(String, i64)> {
        self.read_scored_members(":sync_tasks_priority_queue")
    }

    /// Reads the tasks of a collection with their scores, oldest first.
    fn read_history(&mut self, source: &str, collection: &str) -> Vec<(String, i64)> {
        self.read_scored_members(&format!(":sync_tasks_index:source#{source}:collection#{collection}"))
    }

    fn read_scored_members(&mut self, key: &str) -> Vec<(String, i64)> {
        let reply = self.0.query_texts(&["ZRANGE", key, "0", "-1", "WITHSCORES"]);
        reply.chunks(2).map(|pair| (pair[0].clone(), pair[1].parse::<f64>().unwrap() as i64)).collect()
    }

    /// Reads the fields of a task.
    fn read_task(&mut self, id: &TaskId) -> BTreeMap<String, String> {
        let reply = self.0.query_texts(&["HGETALL", &format!(":sync_tasks#{id}")]);
        reply.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    }

    /// Reads status, start time and end time of a task.
    fn read_status_and_times(&mut self, id: &TaskId) -> [String; 3] {
        let task = self.read_task(id);
        ["status", "started_at", "finished_at"].map(|field| task[field].clone())
    }
}

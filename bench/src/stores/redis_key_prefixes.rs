//! Key prefixes on a Redis server: one for each store of a measurement, whose keys are deleted after it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pointsman_testing::{RedisAdmin, RedisServer, RedisSettings};

/// The number of keys that are scanned and deleted at a time.
const KEYS_PER_SCAN: &str = "1000";

/// The Redis server of a run.
pub(crate) struct RedisBenchServer {
    admin: RedisAdmin,
    /// The server, if it was started for the run; it stops with the run.
    _started_server: Option<RedisServer>,
}

impl RedisBenchServer {
    /// Uses the server at this URL, or starts one that writes every commit to disk.
    pub(crate) fn connect_or_start(url: Option<&str>) -> anyhow::Result<Self> {
        match url {
            Some(url) => Ok(Self { admin: RedisAdmin::new(url)?, _started_server: None }),
            None => {
                let server = RedisServer::start(RedisSettings::default())?;
                Ok(Self { admin: server.admin().clone(), _started_server: Some(server) })
            }
        }
    }

    /// Returns a set of key prefixes for one measurement; it is empty at first.
    pub(crate) fn new_key_prefix_set(&self) -> BenchKeyPrefixes {
        BenchKeyPrefixes { admin: self.admin.clone(), prefixes_by_store_name: Mutex::default() }
    }
}

/// The key prefixes of one measurement.
pub(crate) struct BenchKeyPrefixes {
    admin: RedisAdmin,
    /// The unique prefix of each store, by the store's name.
    prefixes_by_store_name: Mutex<BTreeMap<String, String>>,
}

impl BenchKeyPrefixes {
    /// Returns the key prefix of a store, and chooses one if it has none yet.
    pub(crate) fn get_or_create_prefix(&self, name: &str) -> String {
        let mut prefixes = self.prefixes_by_store_name.lock().unwrap_or_else(PoisonError::into_inner);
        let unique = || format!("bench-{}-{name}:", pointsman_engine::machine_clock_now().micros());
        prefixes.entry(name.to_owned()).or_insert_with(unique).clone()
    }

    pub(crate) fn store_url(&self, name: &str) -> String {
        self.admin.url_with_prefix(&self.get_or_create_prefix(name))
    }

    /// Opens a new connection.
    pub(crate) fn connect(&self) -> anyhow::Result<redis::Connection> {
        Ok(redis::Client::open(self.admin.url())?.get_connection()?)
    }

    /// Returns the memory that all data of the server use, in bytes.
    pub(crate) fn used_memory_bytes(&self) -> anyhow::Result<u64> {
        let stats = self.admin.run_command(&["INFO", "memory"])?.text().unwrap_or_default();
        let line = stats.lines().find_map(|line| line.strip_prefix("used_memory_dataset:"));
        Ok(line.unwrap_or_default().trim().parse()?)
    }
}

impl Drop for BenchKeyPrefixes {
    fn drop(&mut self) {
        let prefixes =
            std::mem::take(&mut *self.prefixes_by_store_name.lock().unwrap_or_else(PoisonError::into_inner));
        for prefix in prefixes.into_values() {
            // If it fails, unused keys stay on the server, recognizable by their prefix.
            let _ = delete_keys_with_prefix(&self.admin, &prefix);
        }
    }
}

fn delete_keys_with_prefix(admin: &RedisAdmin, prefix: &str) -> anyhow::Result<()> {
    let mut connection = admin.connect()?;
    let pattern = format!("{prefix}*");
    let mut cursor = "0".to_owned();
    loop {
        let found = connection.run_command(&["SCAN", &cursor, "MATCH", &pattern, "COUNT", KEYS_PER_SCAN])?;
        let [next, keys] = found.list() else { return Ok(()) };
        let keys = keys.texts();
        if !keys.is_empty() {
            // DEL frees the memory at once, so that the next measurement does not pay for it.
            let arguments: Vec<&str> = ["DEL"].into_iter().chain(keys.iter().map(String::as_str)).collect();
            connection.run_command(&arguments)?;
        }
        cursor = next.text().unwrap_or_else(|| "0".into());
        if cursor == "0" {
            return Ok(());
        }
    }
}

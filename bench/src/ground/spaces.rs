//! Spaces on a Redis: a prefix for each store of a measurement, emptied after it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pointsman_testing::{RedisAdmin, RedisServer, RedisSettings};

/// So many keys are removed at a time.
const PIECE: &str = "1000";

/// The server of a run.
pub(crate) struct Server {
    admin: RedisAdmin,
    /// It was started for the run, and ends with it.
    _private: Option<RedisServer>,
}

impl Server {
    /// The server at this URL, or one that is started here and writes every commit to the disk.
    pub(crate) fn find(url: Option<&str>) -> anyhow::Result<Self> {
        match url {
            Some(url) => Ok(Self { admin: RedisAdmin::new(url)?, _private: None }),
            None => {
                let server = RedisServer::start(RedisSettings::default())?;
                Ok(Self { admin: server.admin().clone(), _private: Some(server) })
            }
        }
    }

    pub(crate) fn spaces(&self) -> Spaces {
        Spaces { admin: self.admin.clone(), made: Mutex::default() }
    }
}

/// The spaces of one measurement.
pub(crate) struct Spaces {
    admin: RedisAdmin,
    /// The prefix of each.
    made: Mutex<BTreeMap<String, String>>,
}

impl Spaces {
    /// What the keys of this name begin with.
    pub(crate) fn prefix(&self, name: &str) -> String {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let unique = || format!("bench-{}-{name}:", pointsman_engine::now().micros());
        made.entry(name.to_owned()).or_insert_with(unique).clone()
    }

    pub(crate) fn url(&self, name: &str) -> String {
        self.admin.url_with_prefix(&self.prefix(name))
    }

    /// A connection of its own.
    pub(crate) fn connect(&self) -> anyhow::Result<redis::Connection> {
        Ok(redis::Client::open(self.admin.url())?.get_connection()?)
    }

    /// How many bytes all data take.
    pub(crate) fn used(&self) -> anyhow::Result<u64> {
        let stats = self.admin.run_command(&["INFO", "memory"])?.text().unwrap_or_default();
        let line = stats.lines().find_map(|line| line.strip_prefix("used_memory_dataset:"));
        Ok(line.unwrap_or_default().trim().parse()?)
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        for prefix in made.into_values() {
            // Should it fail, the server keeps keys whose prefix says whose they were.
            let _ = remove(&self.admin, &prefix);
        }
    }
}

fn remove(admin: &RedisAdmin, prefix: &str) -> anyhow::Result<()> {
    let mut connection = admin.connect()?;
    let pattern = format!("{prefix}*");
    let mut cursor = "0".to_owned();
    loop {
        let found = connection.run_command(&["SCAN", &cursor, "MATCH", &pattern, "COUNT", PIECE])?;
        let [next, keys] = found.list() else { return Ok(()) };
        let keys = keys.texts();
        if !keys.is_empty() {
            // What is removed at once does not take the next measurement's time or memory.
            let words: Vec<&str> = ["DEL"].into_iter().chain(keys.iter().map(String::as_str)).collect();
            connection.run_command(&words)?;
        }
        cursor = next.text().unwrap_or_else(|| "0".into());
        if cursor == "0" {
            return Ok(());
        }
    }
}

//! A Redis master with a replica, and three sentinels that promote the replica when the master fails.

use anyhow::{Context, bail};

use super::{RedisServer, RedisSettings};
use crate::server_process::wait_until;

/// The name of the master in the sentinels' configuration.
const MASTER_NAME: &str = "mymaster";

/// The milliseconds without a reply after which a server counts as down. A sentinel first pings a newly discovered
/// server after a second: with a shorter time, it would consider each new master down, and failovers would
/// never end.
const DOWN_AFTER_MS: usize = 2000;

const SENTINEL_COUNT: usize = 3;

/// The number of sentinels that have to agree that the master is down.
const QUORUM: usize = 2;

/// A master, its replica and their sentinels on loopback. Dropping it stops all of them.
#[derive(Debug)]
pub struct RedisSentinelGroup {
    /// The first master and the first replica. A failover swaps their roles.
    servers: [RedisServer; 2],
    sentinels: Vec<RedisServer>,
}

impl RedisSentinelGroup {
    /// Starts all servers, and waits until the sentinels know each other and the replica is in sync with the master.
    pub fn start() -> anyhow::Result<Self> {
        let no_sync_delay = [("repl-diskless-sync-delay", "0")];
        let master = RedisServer::start(RedisSettings::with_directives(&no_sync_delay))?;
        let (ip, port) = ip_and_port(&master);
        let replica_directives = [no_sync_delay[0], ("replicaof", &format!("{ip} {port}"))];
        let replica = RedisServer::start(RedisSettings::with_directives(&replica_directives))?;
        if !wait_until(|| is_replica_connected(&replica)) {
            bail!("the replica did not connect to the master in time");
        }
        let sentinel_settings = sentinel_settings(&ip, &port);
        let sentinels = (0..SENTINEL_COUNT).map(|_| RedisServer::start_sentinel(&sentinel_settings));
        let sentinels = sentinels.collect::<anyhow::Result<_>>()?;
        let group = Self { servers: [master, replica], sentinels };
        if !wait_until(|| group.sentinels.iter().all(has_discovered_all_servers)) {
            bail!("the sentinels did not find each other in time");
        }
        Ok(group)
    }

    pub fn url(&self) -> String {
        let addresses = self.sentinels.iter().map(|sentinel| sentinel.address().to_string());
        format!("redis+sentinel://{}/{MASTER_NAME}", addresses.collect::<Vec<_>>().join(","))
    }

    /// Returns the current master, as the first running sentinel reports it.
    pub fn find_master(&self) -> anyhow::Result<&RedisServer> {
        let sentinel = self.sentinels.iter().find(|sentinel| sentinel.pid().is_some());
        let sentinel = sentinel.context("no sentinel is running")?;
        let info = sentinel.run_command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME])?.texts();
        let port: u16 = info.get(1).context("the sentinel reports no master")?.parse()?;
        let master = self.servers.iter().find(|server| server.port() == port);
        master.with_context(|| {
            format!("the sentinel reports a master at port {port}, where none of the servers listens")
        })
    }

    pub fn master_port(&self) -> anyhow::Result<u16> {
        Ok(self.find_master()?.port())
    }

    /// Kills the master at once, and returns it. The sentinels count it as down after `DOWN_AFTER_MS`.
    pub fn kill_master(&self) -> anyhow::Result<&RedisServer> {
        let master = self.find_master()?;
        master.kill()?;
        Ok(master)
    }

    /// Waits until another server than `old_master` is the master, as all running sentinels report, and accepts writes.
    pub fn wait_for_failover(&self, old_master: &RedisServer) -> anyhow::Result<&RedisServer> {
        let mut found = None;
        wait_until(|| {
            found = self
                .servers
                .iter()
                .find(|server| server.port() != old_master.port() && self.is_master(server));
            found.is_some()
        });
        found.context("no other server became the master in time")
    }

    /// Starts a killed server again, as a replica of the master. The sentinels would make it a replica, too, but
    /// only after a while.
    pub fn restart_as_replica(&self, server: &RedisServer) -> anyhow::Result<()> {
        let (ip, port) = ip_and_port(self.find_master()?);
        server.start_again()?;
        server.run_command(&["REPLICAOF", &ip, &port])?;
        if !wait_until(|| is_replica_connected(server)) {
            bail!("the restarted server did not connect to the master in time");
        }
        Ok(())
    }

    /// Returns the sentinels, so that tests can kill or query them.
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// Whether all running sentinels report this server as the master, and it has that role itself.
    fn is_master(&self, server: &RedisServer) -> bool {
        let port = server.port().to_string();
        let mut running = self.sentinels.iter().filter(|sentinel| sentinel.pid().is_some());
        let is_reported = running.all(|sentinel| {
            let info = sentinel.run_command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME]);
            info.is_ok_and(|info| info.texts().get(1) == Some(&port))
        });
        is_reported && replication_info_contains(server, "role:master")
    }
}

/// Builds the configuration of a sentinel. It discovers the replica and the other sentinels through the master.
fn sentinel_settings(ip: &str, port: &str) -> RedisSettings {
    RedisSettings::with_directives(&[
        ("sentinel", &format!("monitor {MASTER_NAME} {ip} {port} {QUORUM}")),
        ("sentinel", &format!("down-after-milliseconds {MASTER_NAME} {DOWN_AFTER_MS}")),
        ("sentinel", &format!("failover-timeout {MASTER_NAME} 5000")),
        ("sentinel", &format!("parallel-syncs {MASTER_NAME} 1")),
    ])
}

/// Whether a sentinel has discovered the replica and the other sentinels.
fn has_discovered_all_servers(sentinel: &RedisServer) -> bool {
    let info = sentinel
        .run_command(&["SENTINEL", "MASTER", MASTER_NAME])
        .map(|info| info.texts())
        .unwrap_or_default();
    let has_value = |name: &str, value: usize| {
        info.iter().zip(info.iter().skip(1)).any(|(word, next)| word == name && *next == value.to_string())
    };
    has_value("num-slaves", 1) && has_value("num-other-sentinels", SENTINEL_COUNT - 1)
}

fn ip_and_port(server: &RedisServer) -> (String, String) {
    (server.address().ip().to_string(), server.port().to_string())
}

fn is_replica_connected(replica: &RedisServer) -> bool {
    replication_info_contains(replica, "master_link_status:up")
}

fn replication_info_contains(server: &RedisServer, line: &str) -> bool {
    let info = server.run_command(&["INFO", "replication"]).ok().and_then(|info| info.text());
    info.is_some_and(|info| info.lines().any(|other| other == line))
}

//! A private Redis Cluster: three masters that share the slots, optionally with a replica of each.

use anyhow::{Context, bail};

use super::{RedisServer, RedisSettings};
use crate::free_port;
use crate::server_process::wait_until;

/// The smallest number of masters that has a majority after the loss of one.
const MASTER_COUNT: usize = 3;

/// The number of slots of a Redis Cluster, which are divided among its masters.
const HASH_SLOT_COUNT: usize = 16_384;

/// The milliseconds without a reply after which a server counts as failed. With fewer, servers on a busy machine would
/// count as failed.
const NODE_TIMEOUT_MS: &str = "2000";

/// A Redis Cluster on loopback. Dropping it stops all of its servers.
#[derive(Debug)]
pub struct RedisCluster {
    /// The masters first, then the replicas in the same order.
    servers: Vec<ClusterServer>,
}

/// A master or replica of the cluster.
#[derive(Debug)]
struct ClusterServer {
    server: RedisServer,
    /// The port of the cluster bus, over which the servers exchange their state.
    bus_port: u16,
}

impl RedisCluster {
    /// Starts three masters, and waits until each reports that the cluster is healthy.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with_replica_count(0)
    }

    /// Starts three masters with one replica of each, which takes over when its master fails.
    pub fn start_with_replicas() -> anyhow::Result<Self> {
        Self::start_with_replica_count(MASTER_COUNT)
    }

    fn start_with_replica_count(replicas: usize) -> anyhow::Result<Self> {
        let servers =
            (0..MASTER_COUNT + replicas).map(|_| ClusterServer::start()).collect::<anyhow::Result<_>>()?;
        let cluster = Self { servers };
        cluster.assign_hash_slots()?;
        cluster.introduce_servers()?;
        for (master, replica) in cluster.servers.iter().zip(cluster.servers.iter().skip(MASTER_COUNT)) {
            replica.replicate_from(&master.server)?;
        }
        cluster.wait_until_healthy()?;
        Ok(cluster)
    }

    /// Returns the URL with the addresses of the initial masters. Clients discover the other servers from them.
    pub fn url(&self) -> String {
        let addresses =
            self.servers.iter().take(MASTER_COUNT).map(|member| member.server.address().to_string());
        format!("redis+cluster://{}", addresses.collect::<Vec<_>>().join(","))
    }

    /// Returns a server by its index: the initial masters from 0 on, then the replicas in the same order.
    pub fn server(&self, index: usize) -> anyhow::Result<&RedisServer> {
        let member = self
            .servers
            .get(index)
            .with_context(|| format!("the cluster has no server {index}; the indexes begin at 0"))?;
        Ok(&member.server)
    }

    /// Kills a server at once. The other servers count it as failed after `NODE_TIMEOUT_MS`.
    pub fn kill_server(&self, index: usize) -> anyhow::Result<()> {
        self.server(index)?.kill()
    }

    /// Starts a server again, and waits until all running servers report that the cluster is healthy.
    pub fn start_server_again(&self, index: usize) -> anyhow::Result<()> {
        self.server(index)?.start_again()?;
        self.wait_until_healthy()
    }

    /// Waits until all running servers report that every slot is served.
    pub fn wait_until_healthy(&self) -> anyhow::Result<()> {
        if !wait_until(|| self.running_servers().all(ClusterServer::is_healthy)) {
            bail!("the Redis Cluster did not become healthy in time");
        }
        Ok(())
    }

    /// Waits until a server owns the slot of a key, as after a failover, and the cluster is healthy.
    pub fn wait_for_key_owner(&self, key: &str, index: usize) -> anyhow::Result<()> {
        if !wait_until(|| self.find_key_owner(key).is_ok_and(|owner| owner == index)) {
            bail!("server {index} did not become the owner of the key `{key}` in time");
        }
        self.wait_until_healthy()
    }

    /// Returns the index of the server that owns the slot of a key. Fails if the servers disagree.
    pub fn find_key_owner(&self, key: &str) -> anyhow::Result<usize> {
        let ports = self
            .running_servers()
            .map(|member| member.find_key_owner_port(key))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let port = ports.first().context("no server of the cluster is running")?;
        if ports.iter().any(|other| other != port) {
            bail!("the servers do not agree on the owner of `{key}`: {ports:?}");
        }
        let owner = self.servers.iter().position(|member| member.server.port() == *port);
        owner.with_context(|| format!("no server of the cluster is at port {port}"))
    }

    fn running_servers(&self) -> impl Iterator<Item = &ClusterServer> {
        self.servers.iter().filter(|member| member.server.pid().is_some())
    }

    /// Assigns each master its share of the slots, and each server a distinct configuration epoch, which decides
    /// conflicts.
    fn assign_hash_slots(&self) -> anyhow::Result<()> {
        for (index, member) in self.servers.iter().enumerate() {
            let epoch = (index + 1).to_string();
            member.server.run_command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?;
            if index < MASTER_COUNT {
                let first = (index * HASH_SLOT_COUNT / MASTER_COUNT).to_string();
                let last = ((index + 1) * HASH_SLOT_COUNT / MASTER_COUNT - 1).to_string();
                member.server.run_command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
            }
        }
        Ok(())
    }

    /// Introduces the servers to each other (CLUSTER MEET), and waits until each knows all.
    fn introduce_servers(&self) -> anyhow::Result<()> {
        for member in &self.servers {
            for other in self.servers.iter().filter(|other| other.bus_port != member.bus_port) {
                let (address, bus_port) = (other.server.address(), other.bus_port.to_string());
                let (ip, port) = (address.ip().to_string(), address.port().to_string());
                member.server.run_command(&["CLUSTER", "MEET", &ip, &port, &bus_port])?;
            }
        }
        let server_count = self.servers.len().to_string();
        if !wait_until(|| {
            self.servers.iter().all(|member| member.read_cluster_info("cluster_known_nodes") == server_count)
        }) {
            bail!("the servers of the cluster did not find each other in time");
        }
        Ok(())
    }
}

impl ClusterServer {
    fn start() -> anyhow::Result<Self> {
        let bus_port = free_port::find_free_port()?;
        let settings = RedisSettings::with_directives(&[
            ("cluster-enabled", "yes"),
            ("cluster-port", &bus_port.to_string()),
            ("cluster-node-timeout", NODE_TIMEOUT_MS),
            // A replica stays with its master, so that tests know which replica belongs to which master.
            ("cluster-allow-replica-migration", "no"),
            ("repl-diskless-sync-delay", "0"),
        ]);
        Ok(Self { server: RedisServer::start(settings)?, bus_port })
    }

    /// Makes this server a replica, once it knows its master.
    fn replicate_from(&self, master: &RedisServer) -> anyhow::Result<()> {
        let id = master.run_command(&["CLUSTER", "MYID"])?.text().context("CLUSTER MYID returned no id")?;
        let mut refusal = String::new();
        let is_replica = wait_until(|| match self.server.run_command(&["CLUSTER", "REPLICATE", &id]) {
            Ok(_) => true,
            Err(error) => {
                refusal = format!("{error:#}");
                false
            }
        });
        if !is_replica {
            bail!("a server could not become a replica: {refusal}");
        }
        Ok(())
    }

    /// Whether the server reports that every slot is served and, if it is a replica, is connected to its master.
    fn is_healthy(&self) -> bool {
        let is_replication_up = || {
            let info = self.server.run_command(&["INFO", "replication"]).ok()?.text()?;
            Some(!info.contains("role:slave") || info.contains("master_link_status:up"))
        };
        self.read_cluster_info("cluster_state") == "ok" && is_replication_up().unwrap_or(false)
    }

    /// Reads a value of CLUSTER INFO. Empty if the server does not reply.
    fn read_cluster_info(&self, name: &str) -> String {
        let info = self.server.run_command(&["CLUSTER", "INFO"]).ok().and_then(|info| info.text());
        let info = info.unwrap_or_default();
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(other, _)| *other == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
    }

    /// Returns the port of the server that owns a key, as this server sees it.
    fn find_key_owner_port(&self, key: &str) -> anyhow::Result<u16> {
        let slot = self.server.run_command(&["CLUSTER", "KEYSLOT", key])?.number();
        let ranges = self.server.run_command(&["CLUSTER", "SLOTS"])?;
        let owner = ranges.list().iter().find_map(|range| {
            let [first, last, master, ..] = range.list() else { return None };
            let has_slot = first.number() <= slot && slot <= last.number();
            has_slot.then(|| master.list().get(1)?.number()).flatten()
        });
        Ok(owner.with_context(|| format!("no server serves the slot of the key `{key}`"))?.try_into()?)
    }
}

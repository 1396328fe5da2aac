//! A Redis Cluster of our own: three servers that share the slots, and if wanted a replica of each.

use anyhow::{Context, bail};

use super::{Redis, RedisSettings};
use crate::port;
use crate::process::wait_for;

/// The least that make a majority when one of them has gone.
const MASTERS: usize = 3;

/// All slots of a cluster, which are dealt to its masters.
const SLOTS: usize = 16_384;

/// After how many milliseconds of silence a server is taken for dead. On a busy machine less would be too little.
const NODE_TIMEOUT: &str = "2000";

/// A cluster on loopback. It ends when this is dropped.
#[derive(Debug)]
pub struct RedisCluster {
    /// The masters first, then the replicas in the same order.
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    server: Redis,
    /// Where it hears the others of the cluster.
    bus: u16,
}

impl RedisCluster {
    /// Starts three masters, and waits until each says that all is well.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with(0)
    }

    /// The same with one replica of each, which takes its place when it has gone.
    pub fn start_with_replicas() -> anyhow::Result<Self> {
        Self::start_with(MASTERS)
    }

    fn start_with(replicas: usize) -> anyhow::Result<Self> {
        let nodes = (0..MASTERS + replicas).map(|_| Node::start()).collect::<anyhow::Result<_>>()?;
        let cluster = Self { nodes };
        cluster.deal_slots()?;
        cluster.introduce()?;
        for (master, replica) in cluster.nodes.iter().zip(cluster.nodes.iter().skip(MASTERS)) {
            replica.follow(&master.server)?;
        }
        cluster.wait_until_well()?;
        Ok(cluster)
    }

    /// The URL of the three that were masters at the start, which lead to all others.
    pub fn url(&self) -> String {
        let addresses = self.nodes.iter().take(MASTERS).map(|node| node.server.address().to_string());
        format!("redis+cluster://{}", addresses.collect::<Vec<_>>().join(","))
    }

    /// A server by its number: the masters from 0 on, then the replicas in the same order.
    pub fn node(&self, number: usize) -> anyhow::Result<&Redis> {
        let node = self.nodes.get(number).with_context(|| format!("the cluster has no server {number}"))?;
        Ok(&node.server)
    }

    /// Kills a server at once. The cluster sees it after a while.
    pub fn kill(&self, number: usize) -> anyhow::Result<()> {
        self.node(number)?.kill()
    }

    /// Starts a server again, and waits until it and all others that run say that all is well.
    pub fn start_again(&self, number: usize) -> anyhow::Result<()> {
        self.node(number)?.start_again()?;
        self.wait_until_well()
    }

    /// Waits until all servers that run say that every slot is served.
    pub fn wait_until_well(&self) -> anyhow::Result<()> {
        if !wait_for(|| self.running().all(Node::is_well)) {
            bail!("the cluster is not well");
        }
        Ok(())
    }

    /// Waits until a key belongs to this server, as after the loss of its master, and all say that all is well.
    pub fn wait_for_owner(&self, key: &str, number: usize) -> anyhow::Result<()> {
        if !wait_for(|| self.owner_of(key).is_ok_and(|owner| owner == number)) {
            bail!("the key `{key}` does not come to server {number}");
        }
        self.wait_until_well()
    }

    /// The number of the server that a key belongs to. It is an error if they do not agree on that.
    pub fn owner_of(&self, key: &str) -> anyhow::Result<usize> {
        let ports = self.running().map(|node| node.owner_of(key)).collect::<anyhow::Result<Vec<_>>>()?;
        let port = ports.first().context("no server runs")?;
        if ports.iter().any(|other| other != port) {
            bail!("the servers do not agree on the owner of `{key}`: {ports:?}");
        }
        let owner = self.nodes.iter().position(|node| node.server.port() == *port);
        owner.with_context(|| format!("no server of the cluster is at port {port}"))
    }

    fn running(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.server.pid().is_some())
    }

    /// Gives each master its part of the slots, and a number of its own to settle whose word is newer.
    fn deal_slots(&self) -> anyhow::Result<()> {
        for (number, node) in self.nodes.iter().enumerate() {
            let epoch = (number + 1).to_string();
            node.server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?;
            if number < MASTERS {
                let first = (number * SLOTS / MASTERS).to_string();
                let last = ((number + 1) * SLOTS / MASTERS - 1).to_string();
                node.server.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
            }
        }
        Ok(())
    }

    /// Makes the servers known to each other, and waits until they are.
    fn introduce(&self) -> anyhow::Result<()> {
        for one in &self.nodes {
            for other in self.nodes.iter().filter(|other| other.bus != one.bus) {
                let (address, bus) = (other.server.address(), other.bus.to_string());
                let (ip, port) = (address.ip().to_string(), address.port().to_string());
                one.server.command(&["CLUSTER", "MEET", &ip, &port, &bus])?;
            }
        }
        let all = self.nodes.len().to_string();
        if !wait_for(|| self.nodes.iter().all(|node| node.told("cluster_known_nodes") == all)) {
            bail!("the servers of the cluster do not find each other");
        }
        Ok(())
    }
}

impl Node {
    fn start() -> anyhow::Result<Self> {
        let bus = port::free()?;
        let settings = RedisSettings::with(&[
            ("cluster-enabled", "yes"),
            ("cluster-port", &bus.to_string()),
            ("cluster-node-timeout", NODE_TIMEOUT),
            // A replica stays with its master, so that tests know which is whose.
            ("cluster-allow-replica-migration", "no"),
            ("repl-diskless-sync-delay", "0"),
        ]);
        Ok(Self { server: Redis::start(settings)?, bus })
    }

    /// Makes this one a replica, once it has heard of its master.
    fn follow(&self, master: &Redis) -> anyhow::Result<()> {
        let id = master.command(&["CLUSTER", "MYID"])?.text().context("a server has an id")?;
        let mut refused = String::new();
        let done = wait_for(|| match self.server.command(&["CLUSTER", "REPLICATE", &id]) {
            Ok(_) => true,
            Err(error) => {
                refused = format!("{error:#}");
                false
            }
        });
        if !done {
            bail!("no replica could be made: {refused}");
        }
        Ok(())
    }

    /// Whether it says that every slot is served, and if it is a replica, has what its master has.
    fn is_well(&self) -> bool {
        let replicates = || {
            let told = self.server.command(&["INFO", "replication"]).ok()?.text()?;
            Some(!told.contains("role:slave") || told.contains("master_link_status:up"))
        };
        self.told("cluster_state") == "ok" && replicates().unwrap_or(false)
    }

    /// A line of what it tells of the cluster. Empty if it does not answer.
    fn told(&self, name: &str) -> String {
        let info = self.server.command(&["CLUSTER", "INFO"]).ok().and_then(|info| info.text());
        let info = info.unwrap_or_default();
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(other, _)| *other == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
    }

    /// The port of the server that it takes for the owner of a key.
    fn owner_of(&self, key: &str) -> anyhow::Result<u16> {
        let slot = self.server.command(&["CLUSTER", "KEYSLOT", key])?.number();
        let ranges = self.server.command(&["CLUSTER", "SLOTS"])?;
        let owner = ranges.list().iter().find_map(|range| {
            let [first, last, master, ..] = range.list() else { return None };
            let has = first.number() <= slot && slot <= last.number();
            has.then(|| master.list().get(1)?.number()).flatten()
        });
        Ok(owner.with_context(|| format!("nobody serves the slot of `{key}`"))?.try_into()?)
    }
}

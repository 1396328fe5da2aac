//! A Redis with a replica, and three sentinels that let the one take the place of the other.

use anyhow::{Context, bail};

use super::{Redis, RedisSettings};
use crate::process::wait_for;

/// How the sentinels call the master.
const NAME: &str = "mymaster";

/// After how many milliseconds of silence a server is taken for dead. A sentinel first asks a server that it has
/// just come to know after a second: with less than that, it takes each new master for dead, and no failover is
/// the last.
const DOWN_AFTER: usize = 2000;

const SENTINELS: usize = 3;

/// How many sentinels have to agree that the master has gone.
const QUORUM: usize = 2;

/// A master, its replica and their sentinels on loopback. They end when this is dropped.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: [Redis; 2],
    sentinels: Vec<Redis>,
}

impl RedisSentinel {
    /// Starts them, and waits until all know each other and the replica has what the master has.
    pub fn start() -> anyhow::Result<Self> {
        let quick = [("repl-diskless-sync-delay", "0")];
        let master = Redis::start(RedisSettings::with(&quick))?;
        let (ip, port) = place(&master);
        let following = [quick[0], ("replicaof", &format!("{ip} {port}"))];
        let replica = Redis::start(RedisSettings::with(&following))?;
        if !wait_for(|| follows(&replica)) {
            bail!("the replica does not get what the master has");
        }
        let watching = watching(&ip, &port);
        let sentinels = (0..SENTINELS).map(|_| Redis::start_sentinel(&watching));
        let sentinels = sentinels.collect::<anyhow::Result<_>>()?;
        let sentinel = Self { servers: [master, replica], sentinels };
        if !wait_for(|| sentinel.sentinels.iter().all(knows_all)) {
            bail!("the sentinels do not find each other");
        }
        Ok(sentinel)
    }

    pub fn url(&self) -> String {
        let addresses = self.sentinels.iter().map(|sentinel| sentinel.address().to_string());
        format!("redis+sentinel://{}/{NAME}", addresses.collect::<Vec<_>>().join(","))
    }

    /// Who is the master, as the first sentinel says that runs.
    pub fn master(&self) -> anyhow::Result<&Redis> {
        let sentinel = self.sentinels.iter().find(|sentinel| sentinel.pid().is_some());
        let sentinel = sentinel.context("no sentinel runs")?;
        let told = sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])?.texts();
        let port: u16 = told.get(1).context("the sentinel knows no master")?.parse()?;
        let master = self.servers.iter().find(|server| server.port() == port);
        master.with_context(|| format!("none of the servers is at port {port}"))
    }

    pub fn master_port(&self) -> anyhow::Result<u16> {
        Ok(self.master()?.port())
    }

    /// Kills the master at once, and answers with it. The sentinels see it after a while.
    pub fn kill_master(&self) -> anyhow::Result<&Redis> {
        let master = self.master()?;
        master.kill()?;
        Ok(master)
    }

    /// Waits until another one is the master in place of this one, as all sentinels that run say, and takes writes.
    pub fn wait_for_failover(&self, from: &Redis) -> anyhow::Result<&Redis> {
        let mut found = None;
        wait_for(|| {
            found = self.servers.iter().find(|server| server.port() != from.port() && self.is_master(server));
            found.is_some()
        });
        found.context("no other server has become the master")
    }

    /// Starts a killed server again, as a replica of the master. The sentinels would make it one, too, but take
    /// their time.
    pub fn rejoin(&self, server: &Redis) -> anyhow::Result<()> {
        let (ip, port) = place(self.master()?);
        server.start_again()?;
        server.command(&["REPLICAOF", &ip, &port])?;
        if !wait_for(|| follows(server)) {
            bail!("the server does not get what the master has");
        }
        Ok(())
    }

    /// The sentinels, to be killed or asked.
    pub fn sentinels(&self) -> &[Redis] {
        &self.sentinels
    }

    /// Whether all sentinels name this one, and it knows it.
    fn is_master(&self, server: &Redis) -> bool {
        let port = server.port().to_string();
        let mut running = self.sentinels.iter().filter(|sentinel| sentinel.pid().is_some());
        let named = running.all(|sentinel| {
            let told = sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
            told.is_ok_and(|told| told.texts().get(1) == Some(&port))
        });
        named && tells(server, "role:master")
    }
}

/// What a sentinel is told of the master. It finds the others by itself, through that one.
fn watching(ip: &str, port: &str) -> RedisSettings {
    RedisSettings::with(&[
        ("sentinel", &format!("monitor {NAME} {ip} {port} {QUORUM}")),
        ("sentinel", &format!("down-after-milliseconds {NAME} {DOWN_AFTER}")),
        ("sentinel", &format!("failover-timeout {NAME} 5000")),
        ("sentinel", &format!("parallel-syncs {NAME} 1")),
    ])
}

/// Whether a sentinel has found the replica and the other sentinels.
fn knows_all(sentinel: &Redis) -> bool {
    let told = sentinel.command(&["SENTINEL", "MASTER", NAME]).map(|told| told.texts()).unwrap_or_default();
    let says = |name: &str, value: usize| {
        told.iter().zip(told.iter().skip(1)).any(|(word, next)| word == name && *next == value.to_string())
    };
    says("num-slaves", 1) && says("num-other-sentinels", SENTINELS - 1)
}

fn place(server: &Redis) -> (String, String) {
    (server.address().ip().to_string(), server.port().to_string())
}

fn follows(replica: &Redis) -> bool {
    tells(replica, "master_link_status:up")
}

fn tells(server: &Redis, line: &str) -> bool {
    let told = server.command(&["INFO", "replication"]).ok().and_then(|told| told.text());
    told.is_some_and(|told| told.lines().any(|other| other == line))
}

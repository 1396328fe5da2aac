//! What of a server's settings loses acknowledged writes, or will hinder.
//!
//! Services that run Redis for others mostly let nobody look at its settings; what its figures tell is then all there is.

use std::collections::HashMap;

use pointsman_store::finding::Finding;
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value, from_redis_value};

use crate::connect::line;
use crate::error::reason;
use crate::memory::{FULL, Memory};

/// What is looked at.
const ASKED: [&str; 6] = [
    "appendfsync",
    "maxmemory",
    "min-replicas-to-write",
    "no-appendfsync-on-rewrite",
    "save",
    "stop-writes-on-bgsave-error",
];
/// A replica that was not heard for longer is behind, in seconds.
const BEHIND: u64 = 10;

/// What a server tells of its settings and of how it fares.
pub(crate) struct Settings {
    /// Why they could not be looked at, if so.
    settings: Result<HashMap<String, String>, String>,
    figures: String,
    /// Another server takes the place of this one when it is gone.
    fails_over: bool,
}

/// A finding, and whether it means that what was acknowledged can be lost.
struct Judged {
    finding: Finding,
    loses: bool,
}

fn harmless(finding: Finding) -> Judged {
    Judged { finding, loses: false }
}

fn loses(finding: Finding) -> Judged {
    Judged { finding, loses: true }
}

/// What puts a setting right.
fn set(name: &str, value: &str) -> String {
    format!("Run there: CONFIG SET {name} {value}; CONFIG REWRITE keeps it.")
}

impl Settings {
    pub(crate) async fn read(connection: &mut MultiplexedConnection, fails_over: bool) -> RedisResult<Self> {
        let mut questions = redis::pipe();
        questions.cmd("INFO").arg(&["persistence", "memory", "replication"]);
        questions.cmd("CONFIG").arg("GET").arg(&ASKED);
        let (figures, settings): (RedisResult<String>, RedisResult<Value>) =
            questions.ignore_errors().query_async(connection).await?;
        let settings = settings.map_err(|error| reason(&error));
        let settings = settings.and_then(|value| from_redis_value(value).map_err(|error| error.to_string()));
        Ok(Self { settings, figures: figures?, fails_over })
    }

    /// What it told beside its settings.
    pub(crate) fn figures(&self) -> &str {
        &self.figures
    }

    /// All that is worth a word.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let judged = self.judge();
        let fine = judged.is_empty().then(|| Finding::ok("settings", "none loses data, none hinders"));
        let told = judged.into_iter().map(|judged| judged.finding);
        fine.into_iter().chain(told).chain([self.memory(), self.replicas()]).collect()
    }

    /// Why what was acknowledged can be lost; empty if nothing is known by which it could.
    pub(crate) fn durability(&self) -> Vec<String> {
        let judged = self.judge().into_iter().filter(|judged| judged.loses);
        let mut reasons: Vec<String> =
            judged.map(|Judged { finding, .. }| format!("{} is {}", finding.name, finding.found)).collect();
        if self.figure("connected_slaves") > 0 && self.least_replicas() == 0 {
            reasons.push(format!("min-replicas-to-write is {UNASKED}"));
        }
        reasons
    }

    fn judge(&self) -> Vec<Judged> {
        let each = [self.log(), self.rewriting(), self.policy(), self.last_write(), self.last_rewrite()];
        each.into_iter().chain([self.last_snapshot()]).flatten().collect()
    }

    fn text(&self, name: &str) -> &str {
        line(&self.figures, name).unwrap_or_default()
    }

    fn figure(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_default()
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.settings.as_ref().ok().and_then(|all| all.get(name)).map(String::as_str)
    }

    /// Whether what is acknowledged is on disk.
    fn log(&self) -> Option<Judged> {
        if self.text("aof_enabled") == "0" {
            let so = "no: a server that ends loses what it acknowledged since its last snapshot";
            return Some(loses(Finding::fault("appendonly", so).advise(set("appendonly", "yes"))));
        }
        let so = match self.setting("appendfsync") {
            Some("always") => return None,
            Some("everysec") => {
                "everysec: a machine that crashes loses what was acknowledged in its last second"
            }
            Some("no") => {
                "no: a machine that crashes loses what was acknowledged and not yet written to disk"
            }
            Some(_) | None => {
                let why = self.settings.as_ref().err().map_or("the server does not tell it", String::as_str);
                let found = Finding::warning("appendfsync", format!("not known ({why})"));
                let advice = "Look where the server is set up: only with `always` a crash loses nothing.";
                return Some(loses(found.advise(advice)));
            }
        };
        Some(loses(Finding::fault("appendfsync", so).advise(set("appendfsync", "always"))))
    }

    fn rewriting(&self) -> Option<Judged> {
        const NAME: &str = "no-appendfsync-on-rewrite";
        let wrong = self.setting(NAME) == Some("yes") && self.setting("appendfsync") == Some("always");
        let so =
            "yes: a machine that crashes while the log is rewritten loses what was acknowledged meanwhile";
        wrong.then(|| loses(Finding::fault(NAME, so).advise(set(NAME, "no"))))
    }

    /// What goes when the memory is full.
    fn policy(&self) -> Option<Judged> {
        const NAME: &str = "maxmemory-policy";
        let (policy, limited) = (self.text("maxmemory_policy"), self.figure("maxmemory") > 0);
        let told = |so: &str| format!("{policy}: {so}");
        let judged = match policy {
            "noeviction" | "" => return None,
            _ if policy.starts_with("volatile") => harmless(Finding::warning(
                NAME,
                told(
                    "when the memory is full, workers are taken for dead whose signs of life were thrown away",
                ),
            )),
            _ if limited => loses(Finding::fault(
                NAME,
                told("when the memory is full, Redis throws away what the store holds"),
            )),
            _ => harmless(Finding::warning(
                NAME,
                told("once there is a maxmemory, Redis throws away what the store holds when it is reached"),
            )),
        };
        let Judged { finding, loses } = judged;
        Some(Judged { finding: finding.advise(set(NAME, "noeviction")), loses })
    }

    fn last_write(&self) -> Option<Judged> {
        let failed = self.text("aof_enabled") == "1" && self.text("aof_last_write_status") == "err";
        let found = "the last write to it failed, and until one succeeds Redis takes no others";
        let advice = "See Redis's log, and whether its disk is full.";
        failed.then(|| harmless(Finding::fault("append-only file", found).advise(advice)))
    }

    fn last_rewrite(&self) -> Option<Judged> {
        let failed = self.text("aof_last_bgrewrite_status") == "err";
        let found = "it could not be rewritten the last time, and grows";
        let advice = "See Redis's log; it needs disk for two, and memory to fork.";
        failed.then(|| harmless(Finding::warning("rewriting", found).advise(advice)))
    }

    /// A snapshot that failed stops writes, unless the server is told otherwise or takes none by itself.
    fn last_snapshot(&self) -> Option<Judged> {
        if self.text("rdb_last_bgsave_status") != "err" {
            return None;
        }
        let stops = self.setting("stop-writes-on-bgsave-error") == Some("yes")
            && self.setting("save").is_some_and(|times| !times.is_empty());
        let advice = "See Redis's log, and whether its disk is full. A store needs no snapshots beside the append-only \
                      file: CONFIG SET save \"\" turns them off.";
        let finding = match stops {
            true => Finding::fault("snapshots", "the last one failed, and Redis takes no writes therefore"),
            false => Finding::warning("snapshots", "the last one failed"),
        };
        Some(harmless(finding.advise(advice)))
    }

    /// How much room there is.
    fn memory(&self) -> Finding {
        let memory = Memory::of(&self.figures);
        let Some(percent) = memory.percent() else {
            return Finding::ok("memory", format!("{} are used, and there is no maxmemory", memory.used())).advise(
                "Set one below what the machine has: emits are then refused in time, and the system kills nothing.",
            );
        };
        let found = format!("{} of {} are used ({percent} %)", memory.used(), memory.most());
        let advice =
            "Raise maxmemory, let handlers work off what waits, or keep less (retain_events, history).";
        match percent {
            0..FULL => Finding::ok("memory", found),
            FULL..100 => Finding::warning("memory", format!("{found}: from {FULL} % on emits are refused"))
                .advise(advice),
            _ => Finding::fault("memory", format!("{found}: Redis takes no more")).advise(advice),
        }
    }

    /// Who has a copy, and whether Redis waits until one has.
    fn replicas(&self) -> Finding {
        let count = self.figure("connected_slaves");
        if count == 0 {
            return match self.fails_over {
                true => Finding::warning("replicas", "none: nobody can take the place of this server")
                    .advise("Give it one, so that there is something to fail over to."),
                false => Finding::ok("replicas", "none"),
            };
        }
        let behind: Vec<String> = self.figures.lines().filter_map(behind).collect();
        let followed = format!("{count} {}", if count == 1 { "follows" } else { "follow" });
        if !behind.is_empty() {
            return Finding::warning("replicas", format!("{followed}; {}", behind.join("; ")))
                .advise("What they have not got is lost in a failover. See their logs, and the network.");
        }
        match self.least_replicas() {
            0 => Finding::warning("replicas", format!("{followed}; min-replicas-to-write is {UNASKED}"))
                .advise(set("min-replicas-to-write", "1")),
            least => {
                Finding::ok("replicas", format!("{followed}; Redis takes writes while there are {least}"))
            }
        }
    }

    /// How many replicas there must be for a write. Where settings are not shown, the figures tell whether any must.
    fn least_replicas(&self) -> u64 {
        let told = self.setting("min-replicas-to-write").and_then(|least| least.parse().ok());
        told.unwrap_or_else(|| line(&self.figures, "min_slaves_good_slaves").map_or(0, |_| 1))
    }
}

/// What it means that no replica is asked for.
const UNASKED: &str =
    "0: a master that is cut off acknowledges what nobody else has, and a failover loses that";

/// A replica that lags, by the line that tells of it: `slave0:ip=…,port=…,state=…,offset=…,lag=…`.
fn behind(told: &str) -> Option<String> {
    let (name, parts) = told.trim_end().split_once(':')?;
    name.strip_prefix("slave").filter(|number| number.parse::<u32>().is_ok())?;
    let part = |name: &str| parts.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    let (ip, port, state) = (part("ip")?, part("port")?, part("state")?);
    let lag: u64 = part("lag")?.parse().ok()?;
    match (state, lag > BEHIND) {
        ("online", false) => None,
        ("online", true) => Some(format!("{ip}:{port} was not heard for {lag} s")),
        (_, _) => Some(format!("{ip}:{port} has not got everything yet ({state})")),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_store::finding::Verdict;

    use super::*;

    const WELL: &str = "aof_enabled:1\r\naof_last_write_status:ok\r\naof_last_bgrewrite_status:ok\r\n\
        rdb_last_bgsave_status:ok\r\nused_memory:1000\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\
        connected_slaves:0\r\n";

    fn server(figures: &str, settings: &[(&str, &str)]) -> Settings {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Settings { settings: Ok(settings.collect()), figures: figures.into(), fails_over: false }
    }

    fn wrong(server: &Settings) -> Vec<(&'static str, Verdict)> {
        let findings = server.findings().into_iter().filter(|finding| finding.verdict != Verdict::Ok);
        findings.map(|finding| (finding.name, finding.verdict)).collect()
    }

    const ALWAYS: [(&str, &str); 1] = [("appendfsync", "always")];

    #[test]
    fn a_server_that_loses_nothing_is_fine() {
        let server = server(WELL, &ALWAYS);
        assert_eq!((wrong(&server), server.durability()), (vec![], vec![]));
    }

    #[test]
    fn what_loses_data_is_a_fault_and_told_of_durability() {
        let off = WELL.replace("aof_enabled:1", "aof_enabled:0");
        let evicting = WELL.replace("noeviction", "allkeys-lru").replace("maxmemory:0", "maxmemory:2000");
        let rewriting = [ALWAYS[0], ("no-appendfsync-on-rewrite", "yes")];
        for (figures, settings, name) in [
            (off.as_str(), ALWAYS.as_slice(), "appendonly"),
            (WELL, &[("appendfsync", "everysec")], "appendfsync"),
            (WELL, &[("appendfsync", "no")], "appendfsync"),
            (WELL, &rewriting, "no-appendfsync-on-rewrite"),
            (&evicting, &ALWAYS, "maxmemory-policy"),
        ] {
            let server = server(figures, settings);
            assert_eq!(wrong(&server), [(name, Verdict::Fault)]);
            let durability = server.durability();
            assert!(
                durability.len() == 1 && durability[0].starts_with(&format!("{name} is ")),
                "{durability:?}"
            );
        }
    }

    #[test]
    fn what_may_not_be_looked_at_is_not_taken_for_safe() {
        let settings = Err("NOPERM this user has no permissions".into());
        let server = Settings { settings, figures: WELL.into(), fails_over: false };
        assert_eq!(wrong(&server), [("appendfsync", Verdict::Warning)]);
        assert!(server.durability()[0].contains("not known (NOPERM"), "{:?}", server.durability());
    }

    #[test]
    fn what_only_hinders_is_not_told_of_durability() {
        for (from, to, name, verdict) in [
            ("noeviction", "volatile-ttl", "maxmemory-policy", Verdict::Warning),
            ("noeviction", "allkeys-lfu", "maxmemory-policy", Verdict::Warning),
            ("last_write_status:ok", "last_write_status:err", "append-only file", Verdict::Fault),
            ("bgrewrite_status:ok", "bgrewrite_status:err", "rewriting", Verdict::Warning),
            ("bgsave_status:ok", "bgsave_status:err", "snapshots", Verdict::Warning),
            ("maxmemory:0", "maxmemory:1250", "memory", Verdict::Warning),
            ("maxmemory:0", "maxmemory:1000", "memory", Verdict::Fault),
        ] {
            let server = server(&WELL.replace(from, to), &ALWAYS);
            assert_eq!((wrong(&server), server.durability()), (vec![(name, verdict)], vec![]), "{to}");
        }
        assert_eq!(wrong(&server(&WELL.replace("maxmemory:0", "maxmemory:1251"), &ALWAYS)), []);
        let stopping = [ALWAYS[0], ("stop-writes-on-bgsave-error", "yes"), ("save", "3600 1")];
        let stopped = server(&WELL.replace("bgsave_status:ok", "bgsave_status:err"), &stopping);
        assert_eq!(wrong(&stopped), [("snapshots", Verdict::Fault)]);
    }

    #[test]
    fn replicas_are_needed_where_one_may_have_to_take_over() {
        let alone = Settings { fails_over: true, ..server(WELL, &ALWAYS) };
        assert_eq!(wrong(&alone), [("replicas", Verdict::Warning)]);
        let with = |line: &str, least: &str| {
            let figures = WELL.replace("connected_slaves:0", &format!("connected_slaves:1\r\n{line}"));
            server(&figures, &[ALWAYS[0], ("min-replicas-to-write", least)])
        };
        let online = "slave0:ip=10.0.0.1,port=6379,state=online,offset=1,lag=1";
        assert_eq!(wrong(&with(online, "1")), []);
        assert_eq!(with(online, "1").durability(), [""; 0]);
        assert_eq!(wrong(&with(online, "0")), [("replicas", Verdict::Warning)]);
        assert_eq!(with(online, "0").durability().len(), 1);
        for (line, told) in [
            (online.replace("lag=1", "lag=11"), "10.0.0.1:6379 was not heard for 11 s"),
            (online.replace("online", "wait_bgsave"), "has not got everything yet (wait_bgsave)"),
        ] {
            let finding = with(&line, "1").replicas();
            assert!(finding.verdict == Verdict::Warning && finding.found.contains(told), "{finding:?}");
        }
    }
}

//! Server settings that can lose acknowledged writes or cause trouble.
//!
//! Managed services often forbid reading the settings; then only `INFO` is available.

use std::collections::HashMap;

use pointsman_store::finding::Finding;
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value, from_redis_value};

use crate::connect::info_value;
use crate::error::error_reason;
use crate::memory_usage::{EMIT_REFUSAL_PERCENT, MemoryUsage};

/// The settings that are read from the server.
const CHECKED_SETTINGS: [&str; 6] = [
    "appendfsync",
    "maxmemory",
    "min-replicas-to-write",
    "no-appendfsync-on-rewrite",
    "save",
    "stop-writes-on-bgsave-error",
];
/// Largest lag of a replica that is not reported, in seconds.
const MAX_REPLICA_LAG_SECS: u64 = 10;

/// Settings and `INFO` of a server.
pub(crate) struct ServerSettings {
    /// The settings, or why they could not be read.
    settings: Result<HashMap<String, String>, String>,
    info: String,
    /// Whether another server takes over when this one fails.
    has_failover: bool,
}

/// A finding about a setting, and whether acknowledged writes can be lost because of it.
struct SettingFinding {
    finding: Finding,
    can_lose_data: bool,
}

fn finding_without_data_loss(finding: Finding) -> SettingFinding {
    SettingFinding { finding, can_lose_data: false }
}

fn finding_with_data_loss(finding: Finding) -> SettingFinding {
    SettingFinding { finding, can_lose_data: true }
}

/// Returns the advice to change a setting to a value.
fn config_set_advice(name: &str, value: &str) -> String {
    format!("Run there: CONFIG SET {name} {value}; CONFIG REWRITE makes it permanent.")
}

impl ServerSettings {
    pub(crate) async fn read(
        connection: &mut MultiplexedConnection,
        has_failover: bool,
    ) -> RedisResult<Self> {
        let mut commands = redis::pipe();
        commands.cmd("INFO").arg(&["persistence", "memory", "replication"]);
        commands.cmd("CONFIG").arg("GET").arg(&CHECKED_SETTINGS);
        let (info, settings): (RedisResult<String>, RedisResult<Value>) =
            commands.ignore_errors().query_async(connection).await?;
        let settings = settings.map_err(|error| error_reason(&error));
        let settings = settings.and_then(|value| from_redis_value(value).map_err(|error| error.to_string()));
        Ok(Self { settings, info: info?, has_failover })
    }

    /// Returns the output of `INFO`.
    pub(crate) fn info(&self) -> &str {
        &self.info
    }

    /// Returns all findings.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let evaluated = self.evaluate_settings();
        let all_fine =
            evaluated.is_empty().then(|| Finding::ok("settings", "none can lose data or cause failures"));
        let problems = evaluated.into_iter().map(|evaluated| evaluated.finding);
        all_fine.into_iter().chain(problems).chain([self.check_memory(), self.check_replicas()]).collect()
    }

    /// Returns why acknowledged writes can be lost; empty if no reason is known.
    pub(crate) fn data_loss_reasons(&self) -> Vec<String> {
        let evaluated = self.evaluate_settings().into_iter().filter(|evaluated| evaluated.can_lose_data);
        let mut reasons: Vec<String> = evaluated
            .map(|SettingFinding { finding, .. }| format!("{} is {}", finding.name, finding.observation))
            .collect();
        if self.info_number("connected_slaves") > 0 && self.required_replicas() == 0 {
            reasons.push(format!("min-replicas-to-write is {NO_REPLICA_REQUIRED_EFFECT}"));
        }
        reasons
    }

    fn evaluate_settings(&self) -> Vec<SettingFinding> {
        let checks = [
            self.check_append_only_log(),
            self.check_fsync_on_rewrite(),
            self.check_eviction_policy(),
            self.check_last_aof_write(),
            self.check_last_aof_rewrite(),
        ];
        checks.into_iter().chain([self.check_last_rdb_snapshot()]).flatten().collect()
    }

    fn info_text(&self, name: &str) -> &str {
        info_value(&self.info, name).unwrap_or_default()
    }

    fn info_number(&self, name: &str) -> u64 {
        self.info_text(name).parse().unwrap_or_default()
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.settings.as_ref().ok().and_then(|settings| settings.get(name)).map(String::as_str)
    }

    /// Checks that acknowledged writes are on disk.
    fn check_append_only_log(&self) -> Option<SettingFinding> {
        if self.info_text("aof_enabled") == "0" {
            let effect = "no: a server that ends loses what it acknowledged since its last snapshot";
            return Some(finding_with_data_loss(
                Finding::fault("appendonly", effect).with_advice(config_set_advice("appendonly", "yes")),
            ));
        }
        let effect = match self.setting("appendfsync") {
            Some("always") => return None,
            Some("everysec") => {
                "everysec: a machine that crashes loses what was acknowledged in its last second"
            }
            Some("no") => {
                "no: a machine that crashes loses what was acknowledged and not yet written to disk"
            }
            Some(_) | None => {
                let reason =
                    self.settings.as_ref().err().map_or("the server does not report it", String::as_str);
                let found = Finding::warning("appendfsync", format!("unknown ({reason})"));
                let advice = "Check the configuration of the server: only `always` loses nothing in a crash.";
                return Some(finding_with_data_loss(found.with_advice(advice)));
            }
        };
        Some(finding_with_data_loss(
            Finding::fault("appendfsync", effect).with_advice(config_set_advice("appendfsync", "always")),
        ))
    }

    fn check_fsync_on_rewrite(&self) -> Option<SettingFinding> {
        const SETTING_NAME: &str = "no-appendfsync-on-rewrite";
        let is_unsafe =
            self.setting(SETTING_NAME) == Some("yes") && self.setting("appendfsync") == Some("always");
        let effect =
            "yes: a machine that crashes while the log is rewritten loses what was acknowledged meanwhile";
        is_unsafe.then(|| {
            finding_with_data_loss(
                Finding::fault(SETTING_NAME, effect).with_advice(config_set_advice(SETTING_NAME, "no")),
            )
        })
    }

    /// Checks what Redis evicts when memory is full.
    fn check_eviction_policy(&self) -> Option<SettingFinding> {
        const SETTING_NAME: &str = "maxmemory-policy";
        let (policy, has_limit) = (self.info_text("maxmemory_policy"), self.info_number("maxmemory") > 0);
        let describe = |effect: &str| format!("{policy}: {effect}");
        let evaluated = match policy {
            "noeviction" | "" => return None,
            _ if policy.starts_with("volatile") => finding_without_data_loss(Finding::warning(
                SETTING_NAME,
                describe(
                    "when memory is full, Redis may evict heartbeats, and live workers then count as dead",
                ),
            )),
            _ if has_limit => finding_with_data_loss(Finding::fault(
                SETTING_NAME,
                describe("when memory is full, Redis evicts data of the store"),
            )),
            _ => finding_without_data_loss(Finding::warning(
                SETTING_NAME,
                describe("once a maxmemory is set and reached, Redis evicts data of the store"),
            )),
        };
        let SettingFinding { finding, can_lose_data } = evaluated;
        Some(SettingFinding {
            finding: finding.with_advice(config_set_advice(SETTING_NAME, "noeviction")),
            can_lose_data,
        })
    }

    fn check_last_aof_write(&self) -> Option<SettingFinding> {
        let failed = self.info_text("aof_enabled") == "1" && self.info_text("aof_last_write_status") == "err";
        let found = "the last write to it failed; Redis refuses writes until one succeeds";
        let advice = "Check the log of Redis, and whether its disk is full.";
        failed
            .then(|| finding_without_data_loss(Finding::fault("append-only file", found).with_advice(advice)))
    }

    fn check_last_aof_rewrite(&self) -> Option<SettingFinding> {
        let failed = self.info_text("aof_last_bgrewrite_status") == "err";
        let found = "the last rewrite of the append-only file failed, so it keeps growing";
        let advice =
            "Check the log of Redis; a rewrite needs disk space for a second file, and memory to fork.";
        failed.then(|| finding_without_data_loss(Finding::warning("rewriting", found).with_advice(advice)))
    }

    /// Checks whether the last snapshot failed. Redis then refuses writes, unless it is configured otherwise or takes no
    /// snapshots by itself.
    fn check_last_rdb_snapshot(&self) -> Option<SettingFinding> {
        if self.info_text("rdb_last_bgsave_status") != "err" {
            return None;
        }
        let stops_writes = self.setting("stop-writes-on-bgsave-error") == Some("yes")
            && self.setting("save").is_some_and(|times| !times.is_empty());
        let advice = "Check the log of Redis, and whether its disk is full. A store needs no snapshots besides the append-only \
                      file: CONFIG SET save \"\" disables them.";
        let finding = match stops_writes {
            true => Finding::fault("snapshots", "the last one failed, so Redis refuses writes"),
            false => Finding::warning("snapshots", "the last one failed"),
        };
        Some(finding_without_data_loss(finding.with_advice(advice)))
    }

    /// Checks the memory usage.
    fn check_memory(&self) -> Finding {
        let memory = MemoryUsage::parse(&self.info);
        let Some(percent) = memory.used_percent() else {
            return Finding::ok("memory", format!("{} used, no maxmemory", memory.format_used())).with_advice(
                "Set one below the memory of the machine: emits are then refused before the system kills Redis.",
            );
        };
        let found = format!("{} of {} used ({percent} %)", memory.format_used(), memory.format_limit());
        let advice = "Raise maxmemory, let handlers process waiting tasks, or shorten the retention (journal.retain_events, history.retain_tasks).";
        match percent {
            0..EMIT_REFUSAL_PERCENT => Finding::ok("memory", found),
            EMIT_REFUSAL_PERCENT..100 => Finding::warning(
                "memory",
                format!("{found}: from {EMIT_REFUSAL_PERCENT} % on emits are refused"),
            )
            .with_advice(advice),
            _ => Finding::fault("memory", format!("{found}: Redis refuses writes")).with_advice(advice),
        }
    }

    /// Checks the replicas, and whether Redis requires one for writes.
    fn check_replicas(&self) -> Finding {
        let count = self.info_number("connected_slaves");
        if count == 0 {
            return match self.has_failover {
                true => Finding::warning("replicas", "none: no server can take over")
                    .with_advice("Add a replica, so that a failover is possible."),
                false => Finding::ok("replicas", "none"),
            };
        }
        let lagging: Vec<String> = self.info.lines().filter_map(describe_lagging_replica).collect();
        let connected = format!("{count} connected");
        if !lagging.is_empty() {
            return Finding::warning("replicas", format!("{connected}; {}", lagging.join("; "))).with_advice(
                "Writes that they have not received are lost in a failover. Check their logs and the network.",
            );
        }
        match self.required_replicas() {
            0 => Finding::warning(
                "replicas",
                format!("{connected}; min-replicas-to-write is {NO_REPLICA_REQUIRED_EFFECT}"),
            )
            .with_advice(config_set_advice("min-replicas-to-write", "1")),
            required => Finding::ok("replicas", format!("{connected}; writes require {required}")),
        }
    }

    /// Returns how many replicas a write requires. Without access to the settings, `INFO` shows whether any is required.
    fn required_replicas(&self) -> u64 {
        let required = self.setting("min-replicas-to-write").and_then(|required| required.parse().ok());
        required.unwrap_or_else(|| info_value(&self.info, "min_slaves_good_slaves").map_or(0, |_| 1))
    }
}

/// The value 0 of `min-replicas-to-write`, and its effect.
const NO_REPLICA_REQUIRED_EFFECT: &str =
    "0: a master that is cut off acknowledges writes that no replica has, and a failover loses them";

/// Describes a lagging replica by its line of `INFO`: `slave0:ip=…,port=…,state=…,offset=…,lag=…`.
fn describe_lagging_replica(line: &str) -> Option<String> {
    let (name, parts) = line.trim_end().split_once(':')?;
    name.strip_prefix("slave").filter(|number| number.parse::<u32>().is_ok())?;
    let part = |name: &str| parts.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    let (ip, port, state) = (part("ip")?, part("port")?, part("state")?);
    let lag: u64 = part("lag")?.parse().ok()?;
    match (state, lag > MAX_REPLICA_LAG_SECS) {
        ("online", false) => None,
        ("online", true) => Some(format!("{ip}:{port} has not responded for {lag} s")),
        (_, _) => Some(format!("{ip}:{port} is not synchronized yet ({state})")),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_store::finding::FindingSeverity;

    use super::*;

    const HEALTHY_INFO: &str = "aof_enabled:1\r\naof_last_write_status:ok\r\naof_last_bgrewrite_status:ok\r\n\
        rdb_last_bgsave_status:ok\r\nused_memory:1000\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\
        connected_slaves:0\r\n";

    fn server_settings(info: &str, settings: &[(&str, &str)]) -> ServerSettings {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        ServerSettings { settings: Ok(settings.collect()), info: info.into(), has_failover: false }
    }

    fn problems(server: &ServerSettings) -> Vec<(&'static str, FindingSeverity)> {
        let findings =
            server.findings().into_iter().filter(|finding| finding.severity != FindingSeverity::Ok);
        findings.map(|finding| (finding.name, finding.severity)).collect()
    }

    const FSYNC_ALWAYS: [(&str, &str); 1] = [("appendfsync", "always")];

    #[test]
    fn durable_settings_have_no_findings() {
        let server = server_settings(HEALTHY_INFO, &FSYNC_ALWAYS);
        assert_eq!((problems(&server), server.data_loss_reasons()), (vec![], vec![]));
    }

    #[test]
    fn settings_that_lose_data_are_faults() {
        let aof_disabled = HEALTHY_INFO.replace("aof_enabled:1", "aof_enabled:0");
        let evicting =
            HEALTHY_INFO.replace("noeviction", "allkeys-lru").replace("maxmemory:0", "maxmemory:2000");
        let rewriting = [FSYNC_ALWAYS[0], ("no-appendfsync-on-rewrite", "yes")];
        for (info, settings, name) in [
            (aof_disabled.as_str(), FSYNC_ALWAYS.as_slice(), "appendonly"),
            (HEALTHY_INFO, &[("appendfsync", "everysec")], "appendfsync"),
            (HEALTHY_INFO, &[("appendfsync", "no")], "appendfsync"),
            (HEALTHY_INFO, &rewriting, "no-appendfsync-on-rewrite"),
            (&evicting, &FSYNC_ALWAYS, "maxmemory-policy"),
        ] {
            let server = server_settings(info, settings);
            assert_eq!(problems(&server), [(name, FindingSeverity::Fault)]);
            let reasons = server.data_loss_reasons();
            assert!(reasons.len() == 1 && reasons[0].starts_with(&format!("{name} is ")), "{reasons:?}");
        }
    }

    #[test]
    fn unreadable_settings_are_a_warning() {
        let settings = Err("NOPERM this user has no permissions".into());
        let server = ServerSettings { settings, info: HEALTHY_INFO.into(), has_failover: false };
        assert_eq!(problems(&server), [("appendfsync", FindingSeverity::Warning)]);
        assert!(
            server.data_loss_reasons()[0].contains("unknown (NOPERM"),
            "{:?}",
            server.data_loss_reasons()
        );
    }

    #[test]
    fn settings_without_data_loss_are_not_data_loss_reasons() {
        for (from, to, name, severity) in [
            ("noeviction", "volatile-ttl", "maxmemory-policy", FindingSeverity::Warning),
            ("noeviction", "allkeys-lfu", "maxmemory-policy", FindingSeverity::Warning),
            ("last_write_status:ok", "last_write_status:err", "append-only file", FindingSeverity::Fault),
            ("bgrewrite_status:ok", "bgrewrite_status:err", "rewriting", FindingSeverity::Warning),
            ("bgsave_status:ok", "bgsave_status:err", "snapshots", FindingSeverity::Warning),
            ("maxmemory:0", "maxmemory:1250", "memory", FindingSeverity::Warning),
            ("maxmemory:0", "maxmemory:1000", "memory", FindingSeverity::Fault),
        ] {
            let server = server_settings(&HEALTHY_INFO.replace(from, to), &FSYNC_ALWAYS);
            assert_eq!(
                (problems(&server), server.data_loss_reasons()),
                (vec![(name, severity)], vec![]),
                "{to}"
            );
        }
        assert_eq!(
            problems(&server_settings(&HEALTHY_INFO.replace("maxmemory:0", "maxmemory:1251"), &FSYNC_ALWAYS)),
            []
        );
        let snapshot_settings = [FSYNC_ALWAYS[0], ("stop-writes-on-bgsave-error", "yes"), ("save", "3600 1")];
        let failed_snapshot = server_settings(
            &HEALTHY_INFO.replace("bgsave_status:ok", "bgsave_status:err"),
            &snapshot_settings,
        );
        assert_eq!(problems(&failed_snapshot), [("snapshots", FindingSeverity::Fault)]);
    }

    #[test]
    fn replica_problems_are_warnings() {
        let without_replicas =
            ServerSettings { has_failover: true, ..server_settings(HEALTHY_INFO, &FSYNC_ALWAYS) };
        assert_eq!(problems(&without_replicas), [("replicas", FindingSeverity::Warning)]);
        let with_replica = |line: &str, required: &str| {
            let info = HEALTHY_INFO.replace("connected_slaves:0", &format!("connected_slaves:1\r\n{line}"));
            server_settings(&info, &[FSYNC_ALWAYS[0], ("min-replicas-to-write", required)])
        };
        let online = "slave0:ip=10.0.0.1,port=6379,state=online,offset=1,lag=1";
        assert_eq!(problems(&with_replica(online, "1")), []);
        assert_eq!(with_replica(online, "1").data_loss_reasons(), [""; 0]);
        assert_eq!(problems(&with_replica(online, "0")), [("replicas", FindingSeverity::Warning)]);
        assert_eq!(with_replica(online, "0").data_loss_reasons().len(), 1);
        for (line, expected) in [
            (online.replace("lag=1", "lag=11"), "10.0.0.1:6379 has not responded for 11 s"),
            (online.replace("online", "wait_bgsave"), "is not synchronized yet (wait_bgsave)"),
        ] {
            let finding = with_replica(&line, "1").check_replicas();
            assert!(
                finding.severity == FindingSeverity::Warning && finding.observation.contains(expected),
                "{finding:?}"
            );
        }
    }
}

//! The doctor finds problems of real servers, and its advice fixes them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::now;
use pointsman_core::ErrorChain;
use pointsman_core::store::{Registry as _, Store as _};
use pointsman_store::finding::{Finding, FindingSeverity};
use pointsman_store_redis::doctor;
use pointsman_testing::{RedisCluster, RedisSentinelGroup, RedisServer, RedisSettings};

async fn examine(url: &str) -> Vec<Finding> {
    doctor::examine(url, now).await
}

/// Returns the only finding with a name.
fn finding_named<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    let found: Vec<_> = findings.iter().filter(|finding| finding.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {findings:#?}");
    found[0]
}

/// Returns the names of findings that are not OK.
fn problem_names(findings: &[Finding]) -> Vec<&'static str> {
    findings
        .iter()
        .filter(|finding| finding.severity != FindingSeverity::Ok)
        .map(|finding| finding.name)
        .collect()
}

fn advice_of(finding: &Finding) -> &str {
    finding.advice.as_deref().unwrap_or_default()
}

fn count_keys(server: &RedisServer) -> i64 {
    server.run_command(&["DBSIZE"]).unwrap().number().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn healthy_server_has_no_problems_and_no_leftover_keys() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let findings = examine(&server.url()).await;
    assert_eq!(problem_names(&findings), [""; 0], "{findings:#?}");
    for (name, expected) in [
        ("connection", "not encrypted"),
        ("version", "Redis "),
        ("clock", "as this machine's"),
        ("settings", "none can lose data"),
        ("memory", "no maxmemory"),
        ("replicas", "none"),
        ("keys", "no store yet"),
        ("writing", "acknowledged after"),
        ("listening", "notify each other"),
        ("outbox", "empty"),
        ("event workers", "no dead worker"),
        ("orphaned", "no events"),
        ("set aside", "nothing"),
    ] {
        assert!(finding_named(&findings, name).observation.contains(expected), "{name}: {findings:#?}");
    }
    assert_eq!(count_keys(&server), 0);
}

#[tokio::test]
async fn unreachable_servers_are_reported_without_the_password() {
    for (url, expected) in [
        ("redis://ann:s3cret@127.0.0.1:1", "127.0.0.1:1"),
        ("redis://ann:s3cret@127.0.0.1:1?prefix=%20", "prefix"),
        ("redis+cluster://ann:s3cret@127.0.0.1:1,127.0.0.1:2", "127.0.0.1:2"),
        ("redis://", "names no host"),
    ] {
        let findings = examine(url).await;
        let finding = finding_named(&findings, "connection");
        assert_eq!((findings.len(), finding.severity), (1, FindingSeverity::Fault), "{finding:?}");
        assert!(
            finding.observation.contains(expected) && !format!("{finding:?}").contains("s3cret"),
            "{finding:?}"
        );
    }
}

/// Each wrong setting is reported, and the command of the advice corrects it.
#[tokio::test(flavor = "multi_thread")]
async fn advice_for_settings_fixes_them() {
    let server = RedisServer::start(RedisSettings::with_directives(&[("maxmemory", "1gb")])).unwrap();
    for (name, value, severity) in [
        ("appendonly", "no", FindingSeverity::Fault),
        ("appendfsync", "everysec", FindingSeverity::Fault),
        ("appendfsync", "no", FindingSeverity::Fault),
        ("no-appendfsync-on-rewrite", "yes", FindingSeverity::Fault),
        ("maxmemory-policy", "allkeys-lru", FindingSeverity::Fault),
        ("maxmemory-policy", "volatile-ttl", FindingSeverity::Warning),
    ] {
        server.run_command(&["CONFIG", "SET", name, value]).unwrap();
        let findings = examine(&server.url()).await;
        let finding = finding_named(&findings, name);
        assert!(finding.severity == severity && finding.observation.starts_with(value), "{finding:?}");
        let fix_command = advice_of(finding).strip_prefix("Run there: ").unwrap().split(';').next().unwrap();
        server.run_command(&fix_command.split(' ').collect::<Vec<_>>()).unwrap();
        let findings = examine(&server.url()).await;
        assert_eq!(problem_names(&findings), [""; 0], "{findings:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nearly_full_memory_is_a_warning_and_full_memory_a_fault() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    server.run_command(&["SET", "filler", &"x".repeat(2_000_000)]).unwrap();
    let info = server.run_command(&["INFO", "memory"]).unwrap().text().unwrap();
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    let used: u64 = used.parse().unwrap();
    for (max_memory, severity, writing_severity) in [
        (used * 10 / 9, FindingSeverity::Warning, FindingSeverity::Ok),
        (used / 2, FindingSeverity::Fault, FindingSeverity::Fault),
    ] {
        server.run_command(&["CONFIG", "SET", "maxmemory", &max_memory.to_string()]).unwrap();
        let findings = examine(&server.url()).await;
        assert_eq!(finding_named(&findings, "memory").severity, severity, "{findings:#?}");
        assert_eq!(finding_named(&findings, "writing").severity, writing_severity, "{findings:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permissions_are_reported_and_other_checks_run() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let permissions = ["+@all", "-config", "-@scripting", "resetchannels"];
    let user = [["ACL", "SETUSER", "ann", "on", ">pw", "~*"].as_slice(), &permissions].concat();
    server.run_command(&user).unwrap();
    let findings = examine(&server.url().replace("redis://", "redis://ann:pw@")).await;
    assert_eq!(problem_names(&findings), ["appendfsync", "writing", "listening"], "{findings:#?}");
    assert!(finding_named(&findings, "appendfsync").observation.contains("NOPERM"), "{findings:#?}");
    assert!(finding_named(&findings, "writing").observation.contains("NOPERM"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_keys_are_distinguished_from_outbox_keys() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let url_with_prefix = |prefix: &str| format!("{}?prefix={prefix}", server.url());
    server.run_command(&["LPUSH", "user/1:events", "{}"]).unwrap();
    server.run_command(&["LPUSH", "objects.with.events", "user/1"]).unwrap();
    assert_eq!(finding_named(&examine(&server.url()).await, "keys").severity, FindingSeverity::Ok);
    server.run_command(&["SET", "ours:session", "1"]).unwrap();
    for (url, severity) in [
        (server.url(), FindingSeverity::Warning),
        (url_with_prefix("ours:"), FindingSeverity::Warning),
        (url_with_prefix("o*"), FindingSeverity::Ok),
        (url_with_prefix("other:"), FindingSeverity::Ok),
        (format!("{}/1", server.url()), FindingSeverity::Ok),
    ] {
        let findings = examine(&url).await;
        assert_eq!(finding_named(&findings, "keys").severity, severity, "{url}: {findings:#?}");
    }
    server.run_command(&["SET", "other:objects.with.events", "1"]).unwrap();
    let findings = examine(&url_with_prefix("other:")).await;
    let finding = finding_named(&findings, "keys");
    assert!(
        finding.severity == FindingSeverity::Fault && finding.observation.contains("is a string"),
        "{finding:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_sentinels_and_unrequired_replicas_are_reported() {
    let sentinels = RedisSentinelGroup::start().unwrap();
    let findings = examine(&sentinels.url()).await;
    assert_eq!(problem_names(&findings), ["replicas"], "{findings:#?}");
    assert!(finding_named(&findings, "replicas").observation.contains("min-replicas-to-write is 0"));
    let fix_command = advice_of(finding_named(&findings, "replicas"))
        .strip_prefix("Run there: ")
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    sentinels.find_master().unwrap().run_command(&fix_command.split(' ').collect::<Vec<_>>()).unwrap();
    sentinels.sentinels().first().unwrap().kill().unwrap();
    let findings = examine(&sentinels.url()).await;
    assert_eq!(problem_names(&findings), ["hosts"], "{findings:#?}");
    assert!(
        finding_named(&findings, "hosts")
            .observation
            .contains(&sentinels.sentinels()[0].address().to_string())
    );
    let one = format!("redis+sentinel://{}/mymaster", sentinels.sentinels()[1].address());
    let findings = examine(&one).await;
    assert!(finding_named(&findings, "hosts").observation.contains("only one"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_without_replicas_is_a_warning() {
    let cluster = RedisCluster::start().unwrap();
    let findings = examine(&cluster.url()).await;
    assert_eq!(problem_names(&findings), ["replicas"], "{findings:#?}");
    assert!(finding_named(&findings, "replicas").observation.starts_with("none"), "{findings:#?}");
    assert!(finding_named(&findings, "hosts").observation.starts_with("3 in the URL"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn outbox_backlog_and_dead_workers_are_reported() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    server.run_command(&["LPUSH", "user/1:events", "{\"type\":\"a\"}"]).unwrap();
    server.run_command(&["LPUSH", "objects.with.events", "user/1"]).unwrap();
    server.run_command(&["LPUSH", "event.worker:killed:object", "user/2"]).unwrap();
    server.run_command(&["LPUSH", "event.worker:lives:object", "user/3"]).unwrap();
    server.run_command(&["SET", "event.worker:lives:heartbeat", "1"]).unwrap();
    let findings = examine(&server.url()).await;
    let (outbox, workers) = (finding_named(&findings, "outbox"), finding_named(&findings, "event workers"));
    assert!(
        outbox.severity == FindingSeverity::Warning && outbox.observation == "1 object has events",
        "{outbox:?}"
    );
    assert_eq!(advice_of(outbox), "Start a node: it journals them.");
    assert_eq!(workers.severity, FindingSeverity::Warning);
    assert_eq!(workers.observation, "1 without a heartbeat: killed owns user/2");
    for key in ["event.worker:killed:object", "event.worker:lives:object", "event.worker:lives:heartbeat"] {
        server.run_command(&["DEL", key]).unwrap();
    }

    // A node journals the event. Other entries are set aside, even long ones.
    let long = format!("{{{}", "x".repeat(3 << 20));
    for entry in ["{}", "no JSON", long.as_str(), "{\"type\":\"B a d\"}"] {
        server.run_command(&["LPUSH", "user/1:events", entry]).unwrap();
        server.run_command(&["LPUSH", "objects.with.events", "user/1"]).unwrap();
    }
    let now = pointsman_store_redis::Redis::read_clock(&server.url()).await.unwrap();
    let store = pointsman_store_redis::Redis::open(&server.url(), now).await.unwrap();
    let finding = loop {
        let findings = examine(&server.url()).await;
        let set_aside = finding_named(&findings, "set aside");
        if set_aside.observation.starts_with("4 outbox entries")
            && finding_named(&findings, "outbox").observation == "empty"
        {
            break set_aside.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    store.close();
    assert!(
        finding.severity == FindingSeverity::Warning && finding.observation.contains("for user/1 at 2"),
        "{finding:?}"
    );
    assert!(
        finding.observation.contains("/type") && finding.observation.len() < 300,
        "the newest: {finding:?}"
    );
    let list_command = advice_of(&finding).split(": ").nth(1).unwrap().split(". ").next().unwrap();
    assert_eq!(run_command_of_redis_cli_line(&server, list_command).list().len(), 4);
    run_command_of_redis_cli_line(&server, advice_of(&finding).rsplit_once(": ").unwrap().1);
    assert_eq!(finding_named(&examine(&server.url()).await, "set aside").observation, "nothing");
}

/// Runs the command of a redis-cli call.
fn run_command_of_redis_cli_line(server: &RedisServer, command: &str) -> pointsman_testing::RedisReply {
    let (ip, port) = (server.address().ip(), server.port());
    let args = command.strip_prefix(&format!("redis-cli -h {ip} -p {port} -n 0 "));
    server.run_command(&args.unwrap_or_else(|| panic!("{command}")).split(' ').collect::<Vec<_>>()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn orphaned_objects_are_reported_and_can_be_enqueued() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let push = |list: &str, element: &str| drop(server.run_command(&["LPUSH", list, element]).unwrap());
    let set = |key: &str, value: &str| drop(server.run_command(&["SET", key, value]).unwrap());
    // These are not queued, and the owner of the second is dead and does not name it.
    for n in 10..23 {
        push(&format!("o:{n}:events"), "{\"type\":\"a\"}");
    }
    set("o:11:event.worker", "dead");
    // These are processed: queued, owned by a live worker, owned by a dead worker that names it.
    push("p:1:events", "{}");
    push("objects.with.events", "p:1");
    push("p:2:events", "{}");
    set("p:2:event.worker", "lives");
    set("event.worker:lives:heartbeat", "1");
    push("p:3:events", "{}");
    set("p:3:event.worker", "killed");
    push("event.worker:killed:object", "p:3");
    // These are not events of this store: those of another store, and a key that is not a list.
    set("within:pointsman:store-state", "state");
    push("within:p:4:events", "{}");
    set("p:5:events", "{}");
    let findings = examine(&server.url()).await;
    let finding = finding_named(&findings, "orphaned");
    assert_eq!(finding.severity, FindingSeverity::Warning);
    assert_eq!(
        finding.observation, "13 objects have events that no node reads: o:10; o:11; o:12; and 10 more",
        "{finding:?}"
    );
    assert!(advice_of(finding).contains("run doctor again"), "{finding:?}");
    for remaining in ["3 objects have", "no events"] {
        let findings = examine(&server.url()).await;
        run_command_of_redis_cli_line(
            &server,
            advice_of(finding_named(&findings, "orphaned")).rsplit_once(": ").unwrap().1,
        );
        let findings = examine(&server.url()).await;
        assert!(finding_named(&findings, "orphaned").observation.starts_with(remaining), "{findings:#?}");
    }
    assert_eq!(server.run_command(&["LLEN", "objects.with.events"]).unwrap().number().unwrap(), 14);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_type_lists_are_reported_and_other_checks_run() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    server.run_command(&["SET", "objects.with.events", "1"]).unwrap();
    server.run_command(&["SET", "events.set.aside", "1"]).unwrap();
    let findings = examine(&server.url()).await;
    assert_eq!(problem_names(&findings), ["keys", "outbox", "set aside"], "{findings:#?}");
    assert!(
        finding_named(&findings, "outbox").observation.starts_with("objects.with.events is not a list"),
        "{findings:#?}"
    );
    assert!(
        finding_named(&findings, "set aside").observation.starts_with("events.set.aside is not a list"),
        "{findings:#?}"
    );
    assert_eq!(finding_named(&findings, "event workers").severity, FindingSeverity::Ok);
}

/// Waits until an event worker has a heartbeat.
async fn wait_for_worker_heartbeat(server: &RedisServer) {
    for _ in 0..6_000 {
        if !server.run_command(&["KEYS", "event.worker:*:heartbeat"]).unwrap().list().is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no event worker has a heartbeat");
}

#[tokio::test(flavor = "multi_thread")]
async fn store_lost_under_running_nodes_is_reported() {
    let server = RedisServer::start(RedisSettings::default()).unwrap();
    let now = pointsman_store_redis::Redis::read_clock(&server.url()).await.unwrap();
    let store = pointsman_store_redis::Redis::open(&server.url(), now).await.unwrap();
    wait_for_worker_heartbeat(&server).await;
    server.run_command(&["FLUSHALL"]).unwrap();
    wait_for_worker_heartbeat(&server).await;
    let findings = examine(&server.url()).await;
    let finding = finding_named(&findings, "keys");
    assert_eq!(finding.severity, FindingSeverity::Fault, "{finding:?}");
    assert!(finding.observation.contains("FLUSHALL") && advice_of(finding).contains("backup"), "{finding:?}");
    let refused = ErrorChain(&store.join_node("one", now).await.unwrap_err()).to_string();
    assert!(refused.contains("FLUSHALL") && refused.contains("start the nodes again"), "{refused}");
    store.close();
}

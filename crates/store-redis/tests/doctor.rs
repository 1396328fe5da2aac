//! The doctor finds what is wrong with real servers, and what it advises helps.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use pointsman_core::store::{Registry as _, Store as _};
use pointsman_store::finding::{Finding, Verdict};
use pointsman_store_redis::doctor::examine;
use pointsman_testing::{Redis, RedisCluster, RedisSentinel, RedisSettings};

/// What was found under a name, which must be one thing.
fn of<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    let found: Vec<_> = findings.iter().filter(|finding| finding.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {findings:#?}");
    found[0]
}

/// All that is not fine.
fn wrong(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().filter(|finding| finding.verdict != Verdict::Ok).map(|finding| finding.name).collect()
}

fn advice(finding: &Finding) -> &str {
    finding.advice.as_deref().unwrap_or_default()
}

fn keys(server: &Redis) -> i64 {
    server.command(&["DBSIZE"]).unwrap().number().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_server_has_no_fault_and_nothing_is_left_there() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let findings = examine(&server.url()).await;
    assert_eq!(wrong(&findings), [""; 0], "{findings:#?}");
    for (name, told) in [
        ("connection", "not encrypted"),
        ("version", "Redis "),
        ("clock", "as this machine's"),
        ("settings", "none loses data"),
        ("memory", "no maxmemory"),
        ("replicas", "none"),
        ("keys", "no store yet"),
        ("writing", "acknowledged after"),
        ("listening", "wake each other"),
        ("outbox", "empty"),
        ("event workers", "none"),
        ("not in line", "no events"),
        ("set aside", "nothing"),
    ] {
        assert!(of(&findings, name).found.contains(told), "{name}: {findings:#?}");
    }
    assert_eq!(keys(&server), 0);
}

#[tokio::test]
async fn what_cannot_be_reached_is_told_without_the_password() {
    for (url, told) in [
        ("redis://ann:s3cret@127.0.0.1:1", "127.0.0.1:1"),
        ("redis://ann:s3cret@127.0.0.1:1?prefix=%20", "prefix"),
        ("redis+cluster://ann:s3cret@127.0.0.1:1,127.0.0.1:2", "127.0.0.1:2"),
        ("redis://", "names no host"),
    ] {
        let findings = examine(url).await;
        let finding = of(&findings, "connection");
        assert_eq!((findings.len(), finding.verdict), (1, Verdict::Fault), "{finding:?}");
        assert!(finding.found.contains(told) && !format!("{finding:?}").contains("s3cret"), "{finding:?}");
    }
}

/// Each setting that is put wrong is named, and what is advised puts it right.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_advised_of_settings_helps() {
    let server = Redis::start(RedisSettings::with(&[("maxmemory", "1gb")])).unwrap();
    for (name, value, verdict) in [
        ("appendonly", "no", Verdict::Fault),
        ("appendfsync", "everysec", Verdict::Fault),
        ("appendfsync", "no", Verdict::Fault),
        ("no-appendfsync-on-rewrite", "yes", Verdict::Fault),
        ("maxmemory-policy", "allkeys-lru", Verdict::Fault),
        ("maxmemory-policy", "volatile-ttl", Verdict::Warning),
    ] {
        server.command(&["CONFIG", "SET", name, value]).unwrap();
        let findings = examine(&server.url()).await;
        let finding = of(&findings, name);
        assert!(finding.verdict == verdict && finding.found.starts_with(value), "{finding:?}");
        let remedy = advice(finding).strip_prefix("Run there: ").unwrap().split(';').next().unwrap();
        server.command(&remedy.split(' ').collect::<Vec<_>>()).unwrap();
        let findings = examine(&server.url()).await;
        assert_eq!(wrong(&findings), [""; 0], "{findings:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_full_is_told_of_before_it_takes_no_more() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    server.command(&["SET", "filler", &"x".repeat(2_000_000)]).unwrap();
    let told = server.command(&["INFO", "memory"]).unwrap().text().unwrap();
    let used = told.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    let used: u64 = used.parse().unwrap();
    for (most, verdict, writing) in
        [(used * 10 / 9, Verdict::Warning, Verdict::Ok), (used / 2, Verdict::Fault, Verdict::Fault)]
    {
        server.command(&["CONFIG", "SET", "maxmemory", &most.to_string()]).unwrap();
        let findings = examine(&server.url()).await;
        assert_eq!(of(&findings, "memory").verdict, verdict, "{findings:#?}");
        assert_eq!(of(&findings, "writing").verdict, writing, "{findings:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_may_not_do_is_told_and_the_rest_is_looked_at() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let rights = ["+@all", "-config", "-@scripting", "resetchannels"];
    let user = [["ACL", "SETUSER", "ann", "on", ">pw", "~*"].as_slice(), &rights].concat();
    server.command(&user).unwrap();
    let findings = examine(&server.url().replace("redis://", "redis://ann:pw@")).await;
    assert_eq!(wrong(&findings), ["appendfsync", "writing", "listening"], "{findings:#?}");
    assert!(of(&findings, "appendfsync").found.contains("NOPERM"), "{findings:#?}");
    assert!(of(&findings, "writing").found.contains("NOPERM"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_others_are_told_from_those_of_producers() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let under = |prefix: &str| format!("{}?prefix={prefix}", server.url());
    server.command(&["LPUSH", "user/1:events", "{}"]).unwrap();
    server.command(&["LPUSH", "objects.with.events", "user/1"]).unwrap();
    assert_eq!(of(&examine(&server.url()).await, "keys").verdict, Verdict::Ok);
    server.command(&["SET", "ours:session", "1"]).unwrap();
    for (url, verdict) in [
        (server.url(), Verdict::Warning),
        (under("ours:"), Verdict::Warning),
        (under("o*"), Verdict::Ok),
        (under("other:"), Verdict::Ok),
        (format!("{}/1", server.url()), Verdict::Ok),
    ] {
        let findings = examine(&url).await;
        assert_eq!(of(&findings, "keys").verdict, verdict, "{url}: {findings:#?}");
    }
    server.command(&["SET", "other:objects.with.events", "1"]).unwrap();
    let findings = examine(&under("other:")).await;
    let finding = of(&findings, "keys");
    assert!(finding.verdict == Verdict::Fault && finding.found.contains("is a string"), "{finding:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_that_are_gone_and_replicas_that_nobody_waits_for_are_told() {
    let house = RedisSentinel::start().unwrap();
    let findings = examine(&house.url()).await;
    assert_eq!(wrong(&findings), ["replicas"], "{findings:#?}");
    assert!(of(&findings, "replicas").found.contains("min-replicas-to-write is 0"));
    let remedy =
        advice(of(&findings, "replicas")).strip_prefix("Run there: ").unwrap().split(';').next().unwrap();
    house.master().unwrap().command(&remedy.split(' ').collect::<Vec<_>>()).unwrap();
    house.sentinels().first().unwrap().kill().unwrap();
    let findings = examine(&house.url()).await;
    assert_eq!(wrong(&findings), ["hosts"], "{findings:#?}");
    assert!(of(&findings, "hosts").found.contains(&house.sentinels()[0].address().to_string()));
    let one = format!("redis+sentinel://{}/mymaster", house.sentinels()[1].address());
    let findings = examine(&one).await;
    assert!(of(&findings, "hosts").found.contains("only one"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_replicas_has_nobody_to_take_over() {
    let cluster = RedisCluster::start().unwrap();
    let findings = examine(&cluster.url()).await;
    assert_eq!(wrong(&findings), ["replicas"], "{findings:#?}");
    assert!(of(&findings, "replicas").found.starts_with("none"), "{findings:#?}");
    assert!(of(&findings, "hosts").found.starts_with("3 in the URL"), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_producers_left_is_told_and_so_is_who_holds_it_dead() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    server.command(&["LPUSH", "user/1:events", "{\"type\":\"a\"}"]).unwrap();
    server.command(&["LPUSH", "objects.with.events", "user/1"]).unwrap();
    server.command(&["LPUSH", "event.worker:killed:object", "user/2"]).unwrap();
    server.command(&["LPUSH", "event.worker:lives:object", "user/3"]).unwrap();
    server.command(&["SET", "event.worker:lives:heartbeat", "1"]).unwrap();
    let findings = examine(&server.url()).await;
    let (outbox, workers) = (of(&findings, "outbox"), of(&findings, "event workers"));
    assert!(outbox.verdict == Verdict::Warning && outbox.found == "1 object has events", "{outbox:?}");
    assert_eq!(advice(outbox), "Start a node: it takes them.");
    assert_eq!(workers.verdict, Verdict::Warning);
    assert_eq!(workers.found, "1 without a sign of life: killed holds user/2");
    for key in ["event.worker:killed:object", "event.worker:lives:object", "event.worker:lives:heartbeat"] {
        server.command(&["DEL", key]).unwrap();
    }

    // A node takes what is there. What is no event is set aside, however long it is.
    let long = format!("{{{}", "x".repeat(3 << 20));
    for left in ["{}", "no JSON", long.as_str(), "{\"type\":\"B a d\"}"] {
        server.command(&["LPUSH", "user/1:events", left]).unwrap();
        server.command(&["LPUSH", "objects.with.events", "user/1"]).unwrap();
    }
    let now = pointsman_store_redis::Redis::read_clock(&server.url()).await.unwrap();
    let store = pointsman_store_redis::Redis::open(&server.url(), now).await.unwrap();
    let told = loop {
        let findings = examine(&server.url()).await;
        let aside = of(&findings, "set aside");
        if aside.found.starts_with("4 things") && of(&findings, "outbox").found == "empty" {
            break aside.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    store.close();
    assert!(told.verdict == Verdict::Warning && told.found.contains("for user/1 at 2"), "{told:?}");
    assert!(told.found.contains("/type") && told.found.len() < 300, "the newest: {told:?}");
    let look = advice(&told).split(": ").nth(1).unwrap().split(". ").next().unwrap();
    assert_eq!(call(&server, look).list().len(), 4);
    call(&server, advice(&told).rsplit_once(": ").unwrap().1);
    assert_eq!(of(&examine(&server.url()).await, "set aside").found, "nothing");
}

/// Does what redis-cli would do, called so.
fn call(server: &Redis, command: &str) -> pointsman_testing::Reply {
    let (ip, port) = (server.address().ip(), server.port());
    let words = command.strip_prefix(&format!("redis-cli -h {ip} -p {port} -n 0 "));
    server.command(&words.unwrap_or_else(|| panic!("{command}")).split(' ').collect::<Vec<_>>()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_no_node_looks_at_are_named_and_can_be_put_in_line() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let push = |list: &str, what: &str| drop(server.command(&["LPUSH", list, what]).unwrap());
    let set = |key: &str, value: &str| drop(server.command(&["SET", key, value]).unwrap());
    // Nobody put these in line, and the one who holds the second is dead and does not know of it.
    for n in 10..23 {
        push(&format!("o:{n}:events"), "{\"type\":\"a\"}");
    }
    set("o:11:event.worker", "dead");
    // These are looked at: in line, held by one who lives, held by one who is dead and known to hold it.
    push("p:1:events", "{}");
    push("objects.with.events", "p:1");
    push("p:2:events", "{}");
    set("p:2:event.worker", "lives");
    set("event.worker:lives:heartbeat", "1");
    push("p:3:events", "{}");
    set("p:3:event.worker", "killed");
    push("event.worker:killed:object", "p:3");
    // And these are no events of ours: another store's, and what is no list.
    set("within:pointsman:point", "a point");
    push("within:p:4:events", "{}");
    set("p:5:events", "{}");
    let findings = examine(&server.url()).await;
    let told = of(&findings, "not in line");
    assert_eq!(told.verdict, Verdict::Warning);
    assert_eq!(
        told.found, "13 objects have events that no node looks at: o:10; o:11; o:12; and 10 more",
        "{told:?}"
    );
    assert!(advice(told).contains("look again"), "{told:?}");
    for left in ["3 objects have", "no events"] {
        let findings = examine(&server.url()).await;
        call(&server, advice(of(&findings, "not in line")).rsplit_once(": ").unwrap().1);
        let findings = examine(&server.url()).await;
        assert!(of(&findings, "not in line").found.starts_with(left), "{findings:#?}");
    }
    assert_eq!(server.command(&["LLEN", "objects.with.events"]).unwrap().number().unwrap(), 14);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_are_something_else_are_named_and_the_rest_is_looked_at() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    server.command(&["SET", "objects.with.events", "1"]).unwrap();
    server.command(&["SET", "events.set.aside", "1"]).unwrap();
    let findings = examine(&server.url()).await;
    assert_eq!(wrong(&findings), ["keys", "outbox", "set aside"], "{findings:#?}");
    assert!(of(&findings, "outbox").found.starts_with("objects.with.events is not a list"), "{findings:#?}");
    assert!(of(&findings, "set aside").found.starts_with("events.set.aside is not a list"), "{findings:#?}");
    assert_eq!(of(&findings, "event workers").verdict, Verdict::Ok);
}

/// Waits until an event worker says that it lives.
async fn lives(server: &Redis) {
    for _ in 0..6_000 {
        if !server.command(&["KEYS", "event.worker:*:heartbeat"]).unwrap().list().is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no event worker says that it lives");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_gone_under_its_nodes_is_told_so() {
    let server = Redis::start(RedisSettings::default()).unwrap();
    let now = pointsman_store_redis::Redis::read_clock(&server.url()).await.unwrap();
    let store = pointsman_store_redis::Redis::open(&server.url(), now).await.unwrap();
    lives(&server).await;
    server.command(&["FLUSHALL"]).unwrap();
    lives(&server).await;
    let findings = examine(&server.url()).await;
    let told = of(&findings, "keys");
    assert_eq!(told.verdict, Verdict::Fault, "{told:?}");
    assert!(told.found.contains("FLUSHALL") && advice(told).contains("backup"), "{told:?}");
    let refused = store.join("one", now).await.unwrap_err().to_string();
    assert!(refused.contains("FLUSHALL") && refused.contains("start the nodes again"), "{refused}");
    store.close();
}

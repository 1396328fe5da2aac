//! What is said of a Redis that is not as it should be.

use pointsman_testing::{Redis, RedisSettings};

use super::{Place, an_outage_is_told_without_a_flood, refused, until};

#[test]
fn a_password_may_stand_in_the_environment() {
    let settings = RedisSettings { password: Some("hunter2".into()), ..RedisSettings::default() };
    let redis = Redis::start(settings).unwrap();
    let store = format!("store: redis://{}\n", redis.address());
    refused(&store, 78, &["refused the login of user default", "REDISCLI_AUTH", "POINTSMAN_STORE_FILE"]);
    let wrong = Place::new(&store).with_variable("REDISCLI_AUTH", "wrong").run(&["work"]);
    let told = String::from_utf8(wrong.stderr).unwrap();
    assert!(told.contains("the password in REDISCLI_AUTH"), "{told}");
    let mut place = Place::new(&store).with_variable("REDISCLI_AUTH", "hunter2");
    assert!(place.serve().stop().success());
    let mut in_url = Place::new(&format!("store: {}\n", redis.url())).with_token(place.token());
    assert!(in_url.serve().stop().success());
    for place in [&place, &in_url] {
        let shown = place.ok(&["config", "show"]);
        assert!(
            shown.contains(&format!("redis://{}", redis.address())) && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}

#[test]
fn without_its_server_a_node_says_what_to_do_and_ends() {
    let redis = Redis::start(RedisSettings::default()).unwrap();
    let address = redis.address();
    let url = |rest: &str| format!("store: 'redis://{address}{rest}'\n");
    refused(&url("/99"), 78, &["there is no database 99"]);
    refused(&url("/?prefix=%20"), 78, &["pointsman.yml:1", "`prefix` can only be"]);
    refused(&format!("store: redis+cluster://{address}\n"), 78, &["is not part of a cluster"]);
    refused(&format!("store: redis+sentinel://{address}/mymaster\n"), 78, &["is not a sentinel"]);
    refused("store: redis://me:hunter2@127.0.0.1:x/0\n", 78, &["pointsman.yml:1"]);
    redis.command(&["ACL", "SETUSER", "clerk", "on", ">hunter2", "~*", "+@read", "+@connection"]).unwrap();
    let of_clerk = format!("store: redis://clerk:hunter2@{address}\n");
    refused(&of_clerk, 78, &["lacks permissions", "ACL SETUSER clerk"]);
    let mut newer = Place::new(&url(""));
    assert!(newer.serve().stop().success());
    redis.command(&["HSET", "pointsman:texts", "layout", "1000"]).unwrap();
    refused(&url(""), 78, &["newer version of Pointsman"]);
    redis.stop().unwrap();
    refused(&url(""), 75, &["is it running", "POINTSMAN_STORE"]);
}

#[test]
fn an_outage_does_not_flood_the_log() {
    let redis = Redis::start(RedisSettings::default()).unwrap();
    let start_again = || redis.start_again().unwrap();
    an_outage_is_told_without_a_flood(&redis.url(), || redis.kill().unwrap(), start_again);
}

/// Settings by which acknowledged data are lost are told at the start, and so is what fills the memory.
#[test]
fn what_is_not_as_it_should_be_is_logged_once() {
    let redis = Redis::start(RedisSettings::with(&[("appendonly", "no")])).unwrap();
    let mut place = Place::new(&format!("store: {}\n", redis.url()));
    let node = place.serve_elsewhere();
    let about = |words: &str| {
        let log = place.log();
        log.lines().filter(|line| line.contains("WARN") && line.contains(words)).count()
    };
    assert_eq!(about("Redis can lose acknowledged writes: appendonly is no"), 1, "{}", place.log());
    redis.command(&["CONFIG", "SET", "maxmemory", "1mb"]).unwrap();
    until("emits are refused", || !place.run(&["emit", "record"]).status.success());
    let refused = place.run(&["emit", "record"]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(75), "{told}");
    assert!(told.contains("raise maxmemory") && told.contains("nothing was changed"), "{told}");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    until("they are taken in again", || place.run(&["emit", "record"]).status.success());
    assert_eq!(about("emits and new orders are refused"), 1, "{}", place.log());
    assert_eq!(about("appendonly is no"), 1, "{}", place.log());
    assert!(node.stop().success());
}

//! Errors and warnings about Redis.

use pointsman_testing::{RedisServer, RedisSettings};

use super::{ServerFixture, assert_outage_is_logged_briefly, assert_serve_fails, wait_until};

#[test]
fn the_database_password_can_be_given_in_the_environment() {
    let settings = RedisSettings { password: Some("hunter2".into()), ..RedisSettings::default() };
    let redis = RedisServer::start(settings).unwrap();
    let store = format!("store: redis://{}\n", redis.address());
    assert_serve_fails(
        &store,
        78,
        &["refused the login of user default", "REDISCLI_AUTH", "POINTSMAN_STORE_FILE"],
    );
    let wrong = ServerFixture::new(&store).with_env_variable("REDISCLI_AUTH", "wrong").run_command(&["work"]);
    let stderr = String::from_utf8(wrong.stderr).unwrap();
    assert!(stderr.contains("the password in REDISCLI_AUTH"), "{stderr}");
    let mut pointsman = ServerFixture::new(&store).with_env_variable("REDISCLI_AUTH", "hunter2");
    assert!(pointsman.serve().stop().success());
    let mut in_url = ServerFixture::new(&format!("store: {}\n", redis.url())).with_token(pointsman.token());
    assert!(in_url.serve().stop().success());
    for pointsman in [&pointsman, &in_url] {
        let shown = pointsman.run_ok(&["config", "show"]);
        assert!(
            shown.contains(&format!("redis://{}", redis.address())) && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}

#[test]
fn a_server_that_cannot_use_its_redis_explains_why() {
    let redis = RedisServer::start(RedisSettings::default()).unwrap();
    let address = redis.address();
    let url = |rest: &str| format!("store: 'redis://{address}{rest}'\n");
    assert_serve_fails(&url("/99"), 78, &["there is no database 99"]);
    assert_serve_fails(&url("/?prefix=%20"), 78, &["pointsman.yml:1", "`prefix` can only be"]);
    assert_serve_fails(&format!("store: redis+cluster://{address}\n"), 78, &["is not part of a cluster"]);
    assert_serve_fails(&format!("store: redis+sentinel://{address}/mymaster\n"), 78, &["is not a sentinel"]);
    assert_serve_fails("store: redis://me:hunter2@127.0.0.1:x/0\n", 78, &["pointsman.yml:1"]);
    redis
        .run_command(&["ACL", "SETUSER", "reader", "on", ">hunter2", "~*", "+@read", "+@connection"])
        .unwrap();
    let with_reader = format!("store: redis://reader:hunter2@{address}\n");
    assert_serve_fails(&with_reader, 78, &["lacks permissions", "ACL SETUSER reader"]);
    let mut newer = ServerFixture::new(&url(""));
    assert!(newer.serve().stop().success());
    redis.run_command(&["HSET", "pointsman:texts", "layout", "1000"]).unwrap();
    assert_serve_fails(&url(""), 78, &["newer version of Pointsman"]);
    redis.stop().unwrap();
    assert_serve_fails(&url(""), 75, &["is it running", "POINTSMAN_STORE"]);
}

#[test]
fn an_outage_does_not_flood_the_log() {
    let redis = RedisServer::start(RedisSettings::default()).unwrap();
    let start_again = || redis.start_again().unwrap();
    assert_outage_is_logged_briefly(&redis.url(), || redis.kill().unwrap(), start_again);
}

/// Settings that can lose acknowledged data are logged at the start, and so is full memory.
#[test]
fn unsafe_redis_settings_and_full_memory_are_logged_once() {
    let redis = RedisServer::start(RedisSettings::with_directives(&[("appendonly", "no")])).unwrap();
    let mut pointsman = ServerFixture::new(&format!("store: {}\n", redis.url()));
    let node = pointsman.serve_on_new_port();
    let count_warnings = |words: &str| {
        let log = pointsman.read_server_log();
        log.lines().filter(|line| line.contains("WARN") && line.contains(words)).count()
    };
    assert_eq!(
        count_warnings("Redis can lose acknowledged writes: appendonly is no"),
        1,
        "{}",
        pointsman.read_server_log()
    );
    redis.run_command(&["CONFIG", "SET", "maxmemory", "1mb"]).unwrap();
    wait_until("emits are refused", || !pointsman.run_command(&["emit", "record"]).status.success());
    let refused = pointsman.run_command(&["emit", "record"]);
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("raise maxmemory") && stderr.contains("nothing was changed"), "{stderr}");
    redis.run_command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    wait_until("emits are accepted again", || pointsman.run_command(&["emit", "record"]).status.success());
    assert_eq!(count_warnings("emits and new orders are refused"), 1, "{}", pointsman.read_server_log());
    assert_eq!(count_warnings("appendonly is no"), 1, "{}", pointsman.read_server_log());
    assert!(node.stop().success());
}

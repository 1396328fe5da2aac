//! The servers that all tests of a run share, one of a kind.

use std::sync::OnceLock;

use anyhow::anyhow;

use crate::admin::Admin;
use crate::postgres::{Postgres, Settings};
use crate::redis::{Redis, RedisAdmin, RedisSettings};

/// The variable of the environment that holds the URL of a server that is there already. `cargo xtask test` sets
/// it, so that not every test program starts one.
pub const SHARED_POSTGRES: &str = "TESTING_POSTGRES";

/// The same for a Redis.
pub const SHARED_REDIS: &str = "TESTING_REDIS";

/// A server, started if none is named in the environment.
struct Shared<A, S> {
    admin: A,
    /// Never dropped, as nothing of a program's is that lives to its end: the server ends because its parent
    /// does, and the next one who starts a server removes its folder.
    _server: Option<S>,
}

/// Where a server is kept, or why there is none.
type Kept<A, S> = OnceLock<Result<Shared<A, S>, String>>;

/// The server that tests share. It is not durable, and nobody may stop it: each test makes a database for itself.
pub fn shared() -> anyhow::Result<&'static Admin> {
    static SHARED: Kept<Admin, Postgres> = OnceLock::new();
    get(&SHARED, SHARED_POSTGRES, Admin::new, || {
        let server = Postgres::start(Settings::default())?;
        Ok((server.admin().clone(), server))
    })
}

/// The Redis that tests share. Nobody may stop it or throw away what is there: each test has keys under a
/// [prefix](crate::fresh_prefix) of its own.
pub fn shared_redis() -> anyhow::Result<&'static RedisAdmin> {
    static SHARED: Kept<RedisAdmin, Redis> = OnceLock::new();
    get(&SHARED, SHARED_REDIS, RedisAdmin::new, || {
        let server = Redis::start(RedisSettings::default())?;
        Ok((server.admin().clone(), server))
    })
}

fn get<A, S>(
    kept: &'static Kept<A, S>,
    variable: &str,
    known: fn(&str) -> anyhow::Result<A>,
    start: fn() -> anyhow::Result<(A, S)>,
) -> anyhow::Result<&'static A> {
    let find = || match std::env::var(variable) {
        Ok(url) => Ok(Shared { admin: known(&url)?, _server: None }),
        Err(_) => start().map(|(admin, server)| Shared { admin, _server: Some(server) }),
    };
    let shared = kept.get_or_init(|| find().map_err(|error: anyhow::Error| format!("{error:#}")));
    shared.as_ref().map(|shared| &shared.admin).map_err(|error| anyhow!("{error}"))
}

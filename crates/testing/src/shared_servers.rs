//! The servers that all tests of a run share: one PostgreSQL and one Redis.

use std::sync::OnceLock;

use anyhow::anyhow;

use crate::postgres::{PostgresServer, PostgresSettings};
use crate::postgres_admin::PostgresAdmin;
use crate::redis::{RedisAdmin, RedisServer, RedisSettings};

/// The environment variable with the URL of a running PostgreSQL server. `cargo xtask test` sets it, so that not
/// every test program starts a server.
pub const SHARED_POSTGRES_VARIABLE: &str = "TESTING_POSTGRES";

/// The environment variable with the URL of a running Redis server.
pub const SHARED_REDIS_VARIABLE: &str = "TESTING_REDIS";

/// Access to a shared server, which is started here if the environment names none.
struct SharedServer<A, S> {
    admin: A,
    /// Never dropped, because statics are not: the server ends with its parent process, and the next process that
    /// starts a server removes its folder.
    _server: Option<S>,
}

/// A shared server, or the error of starting it.
type SharedServerCell<A, S> = OnceLock<Result<SharedServer<A, S>, String>>;

/// Returns the PostgreSQL server that tests share. It is not durable, and no test may stop it: each test creates its
/// own database.
pub fn shared_postgres() -> anyhow::Result<&'static PostgresAdmin> {
    static SHARED_POSTGRES: SharedServerCell<PostgresAdmin, PostgresServer> = OnceLock::new();
    get_or_start_shared_server(&SHARED_POSTGRES, SHARED_POSTGRES_VARIABLE, PostgresAdmin::new, || {
        let server = PostgresServer::start(PostgresSettings::default())?;
        Ok((server.admin().clone(), server))
    })
}

/// Returns the Redis server that tests share. No test may stop it or flush its data: each test uses its own
/// [key prefix](crate::unique_key_prefix).
pub fn shared_redis() -> anyhow::Result<&'static RedisAdmin> {
    static SHARED_REDIS: SharedServerCell<RedisAdmin, RedisServer> = OnceLock::new();
    get_or_start_shared_server(&SHARED_REDIS, SHARED_REDIS_VARIABLE, RedisAdmin::new, || {
        let server = RedisServer::start(RedisSettings::default())?;
        Ok((server.admin().clone(), server))
    })
}

/// Returns access to the server at the URL in the environment variable, or starts a server on the first call.
fn get_or_start_shared_server<A, S>(
    cell: &'static SharedServerCell<A, S>,
    variable: &str,
    from_url: fn(&str) -> anyhow::Result<A>,
    start: fn() -> anyhow::Result<(A, S)>,
) -> anyhow::Result<&'static A> {
    let open = || match std::env::var(variable) {
        Ok(url) => Ok(SharedServer { admin: from_url(&url)?, _server: None }),
        Err(_) => start().map(|(admin, server)| SharedServer { admin, _server: Some(server) }),
    };
    let shared = cell.get_or_init(|| open().map_err(|error: anyhow::Error| format!("{error:#}")));
    shared.as_ref().map(|shared| &shared.admin).map_err(|error| anyhow!("{error}"))
}

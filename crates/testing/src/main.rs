//! Starts the servers that many test programs share, prints their URLs as environment variables, and stops them at the
//! end of its input.
//!
//! The parent process keeps the other end of the input pipe, so that the servers stop with it however it ends.

use std::io::{Write, copy, sink, stdin, stdout};

use pointsman_testing::{
    PostgresServer, PostgresSettings, RedisServer, RedisSettings, SHARED_POSTGRES_VARIABLE,
    SHARED_REDIS_VARIABLE,
};

fn main() -> anyhow::Result<()> {
    // If the environment already names a server, the tests use that one.
    let is_unset = |variable| std::env::var_os(variable).is_none();
    let postgres = is_unset(SHARED_POSTGRES_VARIABLE)
        .then(|| PostgresServer::start(PostgresSettings::default()))
        .transpose()?;
    let redis =
        is_unset(SHARED_REDIS_VARIABLE).then(|| RedisServer::start(RedisSettings::default())).transpose()?;
    let mut out = stdout().lock();
    if let Some(postgres) = &postgres {
        writeln!(out, "{SHARED_POSTGRES_VARIABLE}={}", postgres.url("postgres"))?;
    }
    if let Some(redis) = &redis {
        writeln!(out, "{SHARED_REDIS_VARIABLE}={}", redis.url())?;
    }
    // An empty line ends the list.
    writeln!(out)?;
    out.flush()?;
    copy(&mut stdin().lock(), &mut sink())?;
    Ok(())
}

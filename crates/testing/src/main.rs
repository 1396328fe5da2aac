//! The servers of a run of many test programs: started here, told on the output as variables of the environment,
//! ended when the input ends.
//!
//! Whoever starts this holds the other end of its input, so that the servers go with it however it ends.

use std::io::{Write, copy, sink, stdin, stdout};

use pointsman_testing::{Postgres, Redis, RedisSettings, SHARED_POSTGRES, SHARED_REDIS, Settings};

fn main() -> anyhow::Result<()> {
    // One that is there already is for the tests too.
    let wanted = |variable| std::env::var_os(variable).is_none();
    let postgres = wanted(SHARED_POSTGRES).then(|| Postgres::start(Settings::default())).transpose()?;
    let redis = wanted(SHARED_REDIS).then(|| Redis::start(RedisSettings::default())).transpose()?;
    let mut out = stdout().lock();
    if let Some(postgres) = &postgres {
        writeln!(out, "{SHARED_POSTGRES}={}", postgres.url("postgres"))?;
    }
    if let Some(redis) = &redis {
        writeln!(out, "{SHARED_REDIS}={}", redis.url())?;
    }
    // An empty line says that this was all.
    writeln!(out)?;
    out.flush()?;
    copy(&mut stdin().lock(), &mut sink())?;
    Ok(())
}

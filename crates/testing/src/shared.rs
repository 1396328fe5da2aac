//! The one server that all tests of a run have databases on.

use std::sync::OnceLock;

use anyhow::anyhow;

use crate::admin::Admin;
use crate::postgres::{Postgres, Settings};

/// The variable of the environment that holds the URL of a server that is there already. `cargo xtask test` sets
/// it, so that not every test program starts one.
pub const SHARED_POSTGRES: &str = "TESTING_POSTGRES";

/// A server, started if none is named in the environment.
struct Shared {
    admin: Admin,
    /// Never dropped, as nothing of a program's is that lives to its end: the server ends because its parent
    /// does, and the next one who starts a server removes its folder.
    _server: Option<Postgres>,
}

/// The server that tests share. It is not durable, and nobody may stop it: each test makes a database for itself.
pub fn shared() -> anyhow::Result<&'static Admin> {
    static SHARED: OnceLock<Result<Shared, String>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| find().map_err(|error| format!("{error:#}")));
    shared.as_ref().map(|shared| &shared.admin).map_err(|error| anyhow!("{error}"))
}

fn find() -> anyhow::Result<Shared> {
    if let Ok(url) = std::env::var(SHARED_POSTGRES) {
        return Ok(Shared { admin: Admin::new(&url)?, _server: None });
    }
    let server = Postgres::start(Settings::default())?;
    Ok(Shared { admin: server.admin().clone(), _server: Some(server) })
}

//! The databases that several servers can share.

use std::net::SocketAddr;

use pointsman_testing::{
    FaultProxy, PostgresSettings, RedisSettings, shared_postgres, shared_redis, unique_key_prefix,
};

/// A database for tests, on a server of its own that is stopped when this is dropped.
pub(super) trait ClusterTestDatabase {
    /// The store kind that `/healthz` reports.
    const STORE_KIND: &str;

    /// Creates an empty database on the server that all tests share, and returns its URL.
    fn create_database_on_shared_server() -> String;
    /// Starts a server with an empty database.
    fn start_own_server() -> Self;

    fn url(&self) -> String;
    fn server_address(&self) -> SocketAddr;
    fn url_through_proxy(&self, proxy: &FaultProxy) -> String;
    fn kill_server(&self);
    fn restart_server(&self);
    /// Makes writes fail while reads work.
    fn start_refusing_writes(&self);
    fn stop_refusing_writes(&self);
}

pub(super) struct PostgresDatabase {
    server: pointsman_testing::PostgresServer,
    url: String,
}

const REJECT_WRITES_SQL: &str = "
    CREATE FUNCTION refuse_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space on the disk'; END $$;
    CREATE TRIGGER no_event BEFORE INSERT ON pointsman.journal FOR EACH STATEMENT EXECUTE FUNCTION refuse_all();
    CREATE TRIGGER no_sign BEFORE UPDATE ON pointsman.node FOR EACH STATEMENT EXECUTE FUNCTION refuse_all()";

impl PostgresDatabase {
    fn database_name(&self) -> &str {
        self.url.rsplit('/').next().expect("a database")
    }
}

impl ClusterTestDatabase for PostgresDatabase {
    const STORE_KIND: &str = "postgres";

    fn create_database_on_shared_server() -> String {
        shared_postgres().expect("a server").create_database().expect("a database")
    }

    fn start_own_server() -> Self {
        let settings = PostgresSettings { durable: true, ..PostgresSettings::default() };
        let server = pointsman_testing::PostgresServer::start(settings).expect("a server");
        let url = server.create_database().expect("a database");
        Self { server, url }
    }

    fn url(&self) -> String {
        self.url.clone()
    }

    fn server_address(&self) -> SocketAddr {
        self.server.address()
    }

    fn url_through_proxy(&self, proxy: &FaultProxy) -> String {
        self.server.url_through_proxy(proxy, self.database_name()).expect("a URL")
    }

    fn kill_server(&self) {
        self.server.kill().expect("a kill");
    }

    fn restart_server(&self) {
        self.server.start_again().expect("a start");
    }

    fn start_refusing_writes(&self) {
        self.server.query(self.database_name(), REJECT_WRITES_SQL).expect("two triggers");
    }

    fn stop_refusing_writes(&self) {
        self.server.query(self.database_name(), "DROP FUNCTION refuse_all CASCADE").expect("no triggers");
    }
}

pub(super) struct RedisDatabase(pointsman_testing::RedisServer);

impl RedisDatabase {
    pub(super) fn start(settings: RedisSettings) -> Self {
        Self(pointsman_testing::RedisServer::start(settings).expect("a server"))
    }

    pub(super) fn run_command(&self, words: &[&str]) -> pointsman_testing::RedisReply {
        self.0.run_command(words).expect("a reply")
    }

    pub(super) fn set_config(&self, name: &str, value: &str) {
        self.run_command(&["CONFIG", "SET", name, value]);
    }
}

impl ClusterTestDatabase for RedisDatabase {
    const STORE_KIND: &str = "redis";

    fn create_database_on_shared_server() -> String {
        shared_redis().expect("a server").url_with_prefix(&unique_key_prefix())
    }

    fn start_own_server() -> Self {
        Self::start(RedisSettings::default())
    }

    fn url(&self) -> String {
        self.0.url()
    }

    fn server_address(&self) -> SocketAddr {
        self.0.address()
    }

    fn url_through_proxy(&self, proxy: &FaultProxy) -> String {
        self.0.url_through_proxy(proxy).expect("a URL")
    }

    fn kill_server(&self) {
        self.0.kill().expect("a kill");
    }

    fn restart_server(&self) {
        self.0.start_again().expect("a start");
    }

    fn start_refusing_writes(&self) {
        self.set_config("min-replicas-to-write", "1");
    }

    fn stop_refusing_writes(&self) {
        self.set_config("min-replicas-to-write", "0");
    }
}

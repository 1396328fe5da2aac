//! What servers can share, of each kind.

use std::net::SocketAddr;

use pointsman_testing::{Proxy, RedisSettings, Settings, fresh_prefix, shared, shared_redis};

/// A database on a server of its own, which ends when this is dropped.
pub(super) trait Database {
    /// What a server calls its kind.
    const KIND: &str;

    /// The URL of one that is empty, on the server that all tests share.
    fn shared() -> String;
    fn own() -> Self;

    fn url(&self) -> String;
    fn address(&self) -> SocketAddr;
    fn url_through(&self, proxy: &Proxy) -> String;
    fn kill(&self);
    fn start_again(&self);
    /// Everything can be read, and nothing can be written.
    fn refuse_writes(&self);
    fn take_writes(&self);
}

pub(super) struct Postgres {
    server: pointsman_testing::Postgres,
    url: String,
}

const NO_WRITES: &str = "
    CREATE FUNCTION refuse_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room on the disk'; END $$;
    CREATE TRIGGER no_event BEFORE INSERT ON pointsman.journal FOR EACH STATEMENT EXECUTE FUNCTION refuse_all();
    CREATE TRIGGER no_sign BEFORE UPDATE ON pointsman.node FOR EACH STATEMENT EXECUTE FUNCTION refuse_all()";

impl Postgres {
    fn database(&self) -> &str {
        self.url.rsplit('/').next().expect("a database")
    }
}

impl Database for Postgres {
    const KIND: &str = "postgres";

    fn shared() -> String {
        shared().expect("a server").create_database().expect("a database")
    }

    fn own() -> Self {
        let settings = Settings { durable: true, ..Settings::default() };
        let server = pointsman_testing::Postgres::start(settings).expect("a server");
        let url = server.create_database().expect("a database");
        Self { server, url }
    }

    fn url(&self) -> String {
        self.url.clone()
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn url_through(&self, proxy: &Proxy) -> String {
        self.server.url_through(proxy, self.database()).expect("a URL")
    }

    fn kill(&self) {
        self.server.kill().expect("a kill");
    }

    fn start_again(&self) {
        self.server.start_again().expect("a start");
    }

    fn refuse_writes(&self) {
        self.server.query(self.database(), NO_WRITES).expect("two triggers");
    }

    fn take_writes(&self) {
        self.server.query(self.database(), "DROP FUNCTION refuse_all CASCADE").expect("no triggers");
    }
}

pub(super) struct Redis(pointsman_testing::Redis);

impl Redis {
    pub(super) fn start(settings: RedisSettings) -> Self {
        Self(pointsman_testing::Redis::start(settings).expect("a server"))
    }

    pub(super) fn command(&self, words: &[&str]) -> pointsman_testing::Reply {
        self.0.command(words).expect("an answer")
    }

    pub(super) fn set(&self, name: &str, value: &str) {
        self.command(&["CONFIG", "SET", name, value]);
    }
}

impl Database for Redis {
    const KIND: &str = "redis";

    fn shared() -> String {
        shared_redis().expect("a server").url_under(&fresh_prefix())
    }

    fn own() -> Self {
        Self::start(RedisSettings::default())
    }

    fn url(&self) -> String {
        self.0.url()
    }

    fn address(&self) -> SocketAddr {
        self.0.address()
    }

    fn url_through(&self, proxy: &Proxy) -> String {
        self.0.url_through(proxy).expect("a URL")
    }

    fn kill(&self) {
        self.0.kill().expect("a kill");
    }

    fn start_again(&self) {
        self.0.start_again().expect("a start");
    }

    fn refuse_writes(&self) {
        self.set("min-replicas-to-write", "1");
    }

    fn take_writes(&self) {
        self.set("min-replicas-to-write", "0");
    }
}

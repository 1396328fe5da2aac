//! Real servers for tests and benchmarks: private, on loopback, and gone when they are no longer needed.
//!
//! ```text
//!  postgres     a PostgreSQL server that can be stopped, killed and started again
//!  pgbouncer    PgBouncer before one, in transaction mode
//!  redis/       a Redis that can be stopped, killed, halted, started again and put back to an earlier state;
//!               a cluster of them, and one with a replica and sentinels
//!  disk         a small disk that can be filled up
//!  faketime     cleaning up after processes whose clock is off
//!  proxy        a wire that can be cut, frozen, or made to lose answers
//!  shared       the one server of a kind that all tests of a run have their data on
//!  admin        databases on a server, and what is asked of it on the side
//!  clients      Python and Node with their drivers, for tests that come from elsewhere
//!
//!  process      a server's process, which never outlives ours
//!  folder       a server's folder, and what killed processes left of theirs
//!  template     a database cluster made once and copied from then on
//!  programs, user, port, tree, target: what is installed, whom servers run as, where they listen,
//!               whose child is whose, where things are kept from one run to the next
//! ```
//!
//! All of it is blocking, and may be called from within a tokio runtime as well as without one. It is for Linux:
//! it needs `/proc`, and `setpriv` of util-linux.

mod admin;
mod chance;
mod clients;
mod disk;
mod faketime;
mod folder;
mod pgbouncer;
mod port;
mod postgres;
mod process;
mod programs;
mod proxy;
mod redis;
mod shared;
mod target;
mod template;
mod tree;
mod user;

pub use admin::Admin;
pub use chance::Chance;
pub use clients::{node, python};
pub use disk::Disk;
pub use faketime::remove_stale_faketime;
pub use pgbouncer::PgBouncer;
pub use postgres::{Postgres, Settings};
pub use proxy::Proxy;
pub use redis::{
    Redis, RedisAdmin, RedisCluster, RedisConnection, RedisSentinel, RedisSettings, Reply, fresh_prefix,
};
pub use shared::{SHARED_POSTGRES, SHARED_REDIS, shared, shared_redis};

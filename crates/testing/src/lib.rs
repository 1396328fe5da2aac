//! Real servers for tests and benchmarks: private, on loopback, stopped and removed when dropped.
//!
//! ```text
//!  postgres          a PostgreSQL server that can be stopped, killed and started again
//!  postgres_admin    creates databases on a server and runs SQL there
//!  pgbouncer         PgBouncer in front of a PostgreSQL server, in transaction mode
//!  redis/            a Redis server that can be stopped, killed, paused, started again and restored to an earlier
//!                    state; a Redis Cluster; a master with a replica and sentinels
//!  shared_servers
//!                    one PostgreSQL and one Redis server, shared by all tests of a run
//!  fault_proxy       a TCP proxy that can close or freeze connections and drop replies
//!  tmpfs_disk        a small tmpfs disk that can be filled up
//!  faketime_cleanup  removes the files that killed processes under faketime leave behind
//!  rng               reproducible random numbers
//!  python_and_nodejs Python and Node.js with their PostgreSQL drivers, for tests in other languages
//!
//!  data_directory_template
//!                    a PostgreSQL data directory, created once and copied from then on
//!  server_process
//!                    the child process of a PostgreSQL, Redis or PgBouncer server, which ends with this process
//!  server_folder
//!                    a server's folder; removes the folders of killed processes
//!  server_os_user
//!                    the user that servers run as: an unprivileged one if this process runs as root
//!  server_programs
//!                    finds the installed server programs
//!  free_port         finds free ports on loopback
//!  proc_stat         reads the parents and states of processes from /proc
//!  target_folder     finds cargo's target folder, where files are kept between runs
//! ```
//!
//! All functions block, and may be called inside and outside of a tokio runtime. They need Linux: `/proc`, and
//! `setpriv` of util-linux.

mod data_directory_template;
mod faketime_cleanup;
mod fault_proxy;
mod free_port;
mod pgbouncer;
mod postgres;
mod postgres_admin;
mod proc_stat;
mod python_and_nodejs;
mod redis;
mod rng;
mod server_folder;
mod server_os_user;
mod server_process;
mod server_programs;
mod shared_servers;
mod target_folder;
mod tmpfs_disk;

pub use faketime_cleanup::remove_stale_faketime_files;
pub use fault_proxy::FaultProxy;
pub use pgbouncer::PgBouncer;
pub use postgres::{PostgresServer, PostgresSettings};
pub use postgres_admin::PostgresAdmin;
pub use python_and_nodejs::{find_nodejs_with_pg, find_python_with_psycopg};
pub use redis::{
    RedisAdmin, RedisCluster, RedisConnection, RedisReply, RedisSentinelGroup, RedisServer, RedisSettings,
    unique_key_prefix,
};
pub use rng::Rng;
pub use shared_servers::{SHARED_POSTGRES_VARIABLE, SHARED_REDIS_VARIABLE, shared_postgres, shared_redis};
pub use tmpfs_disk::TmpfsDisk;

//! Real servers for tests and benchmarks: private, on loopback, and gone when they are no longer needed.
//!
//! ```text
//!  postgres     a PostgreSQL server that can be stopped, killed and started again
//!  pgbouncer    PgBouncer before one, in transaction mode
//!  proxy        a wire that can be cut, frozen, or made to lose answers
//!  shared       the one server that all tests of a run have databases on
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
mod clients;
mod folder;
mod pgbouncer;
mod port;
mod postgres;
mod process;
mod programs;
mod proxy;
mod shared;
mod target;
mod template;
mod tree;
mod user;

pub use admin::Admin;
pub use clients::{node, python};
pub use pgbouncer::PgBouncer;
pub use postgres::{Postgres, Settings};
pub use proxy::Proxy;
pub use shared::{SHARED_POSTGRES, shared};

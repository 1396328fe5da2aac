//! Limits what one client can use: shares per token and per address.
//!
//! ```text
//!  response_memory_budget     memory for responses that clients have not read yet: one budget, with a share per token
//!  connection_memory_permits  whether a connection uses response memory
//!  response_memory            reserves memory for response bodies, until they are written
//!  paged_response             responses that are built and sent page by page
//!  stream_memory              the memory of streams that follow the journal or a log
//!  stream_limiter             open streams and long polls per token
//!  authentication_throttle    failed authentications per address
//! ```
//!
//! Connections are limited by `listen::admission`, before their requests are read.

mod authentication_throttle;
mod connection_memory_permits;
mod paged_response;
mod response_memory;
mod response_memory_budget;
mod stream_limiter;
mod stream_memory;

#[cfg(test)]
pub(crate) mod testing;

pub(crate) use authentication_throttle::AuthenticationThrottle;
pub(crate) use connection_memory_permits::ConnectionMemoryPermits;
pub(crate) use paged_response::{PageMemory, stream_json_chunks};
pub(crate) use response_memory::{
    ClaimResponseMarker, MAX_UNCOUNTED_RESPONSE_BYTES, keep_permit_until_stream_end, reserve_response_memory,
};
pub(crate) use response_memory_budget::{ResponseMemoryBudget, ResponseMemoryPermit};
pub(crate) use stream_limiter::{StreamLimiter, StreamPermit};
pub(crate) use stream_memory::StreamMemory;

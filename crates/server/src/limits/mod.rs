//! Limits what one client can use: shares per token and per address.
//!
//! ```text
//!  response_budget         memory for responses that clients have not read yet: one budget, with a share per token
//!  connection_memory       whether a connection uses response memory
//!  charged_response        response bodies that release their memory once they are written
//!  paged_response          responses that are built and sent page by page
//!  stream_memory           the memory of streams that follow the journal or a log
//!  stream_shares           open streams and long polls per token
//!  failed_authentications  failed authentications per address
//! ```
//!
//! Connections are limited by `listen::admission`, before their requests are read.

mod charged_response;
mod connection_memory;
mod failed_authentications;
mod paged_response;
mod response_budget;
mod stream_limiter;
mod stream_memory;

#[cfg(test)]
pub(crate) mod testing;

pub(crate) use charged_response::{
    ClaimResponseMarker, SMALL_RESPONSE_BYTES, charge_response, hold_permit_for_stream,
};
pub(crate) use connection_memory::ConnectionMemory;
pub(crate) use failed_authentications::FailedAuthentications;
pub(crate) use paged_response::{PageMemory, stream_json_chunks};
pub(crate) use response_budget::{ResponseBudget, ResponsePermit};
pub(crate) use stream_limiter::{StreamLimiter, StreamPermit};
pub(crate) use stream_memory::StreamMemory;

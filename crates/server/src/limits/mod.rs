//! Limits what one client can use: shares per token and per address.
//!
//! ```text
//!  responses          memory for responses that clients have not read yet: one budget, with a share per token
//!  connection_memory  whether a connection has a part of it
//!  charged            bodies of responses that give their share back once they are written
//!  paged              responses that are made and sent page by page
//!  streamed           the memory of streams that follow something as it grows
//!  streams            open streams and long polls per token
//!  failures           failed authentications per address
//! ```
//!
//! Connections are shared by `listen::admission`, before anything is known of their requests.

mod charged_response;
mod connection_memory;
mod failed_authentications;
mod paged_response;
mod response_budget;
mod stream_memory;
mod stream_shares;

#[cfg(test)]
pub(crate) mod testing;

pub(crate) use charged_response::{
    ClaimResponse, SMALL_RESPONSE_BYTES, charge_response, hold_permit_for_stream,
};
pub(crate) use connection_memory::ConnectionMemory;
pub(crate) use failed_authentications::FailedAuthentications;
pub(crate) use paged_response::{PageMemory, stream_json_pieces};
pub(crate) use response_budget::{ResponseBudget, ResponsePermit};
pub(crate) use stream_memory::StreamMemory;
pub(crate) use stream_shares::{StreamPermit, StreamShares};

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

mod charged;
mod connection_memory;
mod failures;
mod paged;
mod responses;
mod streamed;
mod streams;

#[cfg(test)]
pub(crate) mod testing;

pub(crate) use charged::{ClaimResponse, SMALL_RESPONSE, charge_response, keep_permit};
pub(crate) use connection_memory::ConnectionMemory;
pub(crate) use failures::FailedAuthentications;
pub(crate) use paged::{PageMemory, answer_in_pieces};
pub(crate) use responses::{ResponseBudget, ResponsePermit};
pub(crate) use streamed::StreamMemory;
pub(crate) use streams::{StreamPermit, StreamShares};

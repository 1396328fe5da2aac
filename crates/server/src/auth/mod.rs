//! Who may do what.
//!
//! ```text
//!  role      what a token may do
//!  tokens    which tokens there are: their hashes, compared in constant time
//!  first     the token a server makes when it has none
//!  identity  whose token a request carries
//!  extract   who sent a request, as handlers ask for it
//! ```

mod extract;
mod first;
mod identity;
mod role;
mod tokens;

pub(crate) use extract::{Admin, Anyone, Operator, Producer, Viewer, Worker};
pub(crate) use first::{FirstToken, beside, fresh, from_hex, to_hex};
pub(crate) use identity::Identity;
pub use role::{BadRole, Role};
pub(crate) use tokens::TokenId;
pub use tokens::{Caller, Tokens, hash, new_token};

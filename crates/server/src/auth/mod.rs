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
mod first_token;
mod identity;
mod role;
mod tokens;

pub(crate) use extract::{Admin, AnyCaller, Operator, Producer, Viewer, Worker};
pub(crate) use first_token::{FirstToken, from_hex, load_or_create_first_token, new_first_token, to_hex};
pub(crate) use identity::Identity;
pub use role::{BadRole, Role};
pub(crate) use tokens::TokenId;
pub use tokens::{AcceptedTokens, Caller, generate_token, hash_token};

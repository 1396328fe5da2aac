//! Authentication and authorization.
//!
//! ```text
//!  role               the roles of tokens
//!  tokens             the accepted tokens: their hashes, compared in constant time
//!  first_token        the token that a server without configured tokens creates
//!  identity           the sender of a request, identified by its token
//!  caller_extractors  extractors that give request handlers a caller with the required role
//! ```

mod caller_extractors;
mod first_token;
mod identity;
mod role;
mod tokens;

pub(crate) use caller_extractors::{Admin, AnyCaller, Operator, Producer, Viewer, Worker};
pub(crate) use first_token::{
    FirstToken, decode_sha256_hex, encode_sha256_hex, generate_first_token, load_or_create_first_token,
};
pub(crate) use identity::Identity;
pub use role::{BadRole, Role};
pub(crate) use tokens::TokenHash;
pub use tokens::{AcceptedTokens, Caller, generate_token, hash_token};

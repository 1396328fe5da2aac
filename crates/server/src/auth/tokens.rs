//! Tokens: 256 random bits each, kept as SHA-256, compared in constant time.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pointsman_core::Tenant;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Role;
use crate::config::TokenDef;

/// Every token that is accepted.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<TokenDef>);

/// Identifies a token: its hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenId([u8; 32]);

impl std::fmt::Debug for TokenId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenId")
    }
}

/// Who sent a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name of the token.
    pub name: String,
    pub role: Role,
    /// The only tenant it may name, if it is bound to one.
    pub tenant: Option<Tenant>,
    sha256: [u8; 32],
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, role, tenant, sha256: _ } = self;
        f.debug_struct("Caller").field("name", name).field("role", role).field("tenant", tenant).finish()
    }
}

impl From<&TokenDef> for Caller {
    fn from(token: &TokenDef) -> Self {
        let TokenDef { name, role, tenant, sha256 } = token.clone();
        Self { name, role, tenant, sha256 }
    }
}

impl Caller {
    pub(crate) fn token_id(&self) -> TokenId {
        TokenId(self.sha256)
    }
}

impl Tokens {
    pub fn new(tokens: Vec<TokenDef>) -> Self {
        Self(tokens)
    }

    /// Whose token this is. All of them are compared, whichever matches, so that the time taken tells nothing.
    pub fn caller(&self, presented: &str) -> Option<Caller> {
        let hash = hash(presented);
        let mut found = None;
        for token in &self.0 {
            if bool::from(token.sha256.ct_eq(&hash)) {
                found = Some(token);
            }
        }
        found.map(Caller::from)
    }

    /// Whether a caller would still be let in, and as the same.
    pub(crate) fn knows(&self, caller: &Caller) -> bool {
        self.0.iter().any(|token| Caller::from(token) == *caller)
    }
}

/// What is kept of a token.
pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A token that nobody has seen yet: 256 bits.
pub fn new_token() -> String {
    // Each of the three brings 122 bits from the system's generator.
    let mut digest = Sha256::new();
    for _ in 0..3 {
        digest.update(uuid::Uuid::new_v4().as_bytes());
    }
    format!("pm_{}", URL_SAFE_NO_PAD.encode(digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn def(name: &str, token: &str, role: Role) -> TokenDef {
        TokenDef { name: name.into(), role, tenant: None, sha256: hash(token) }
    }

    #[test]
    fn a_token_is_found_by_its_hash() {
        let tokens = Tokens::new(vec![def("a", "one", Role::Viewer), def("b", "two", Role::Admin)]);
        assert_eq!(tokens.caller("one").unwrap().name, "a");
        assert_eq!(tokens.caller("two").unwrap().role, Role::Admin);
        for bad in ["", "three", "One", "one "] {
            assert!(tokens.caller(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let token = new_token();
        assert_eq!(token.len(), "pm_".len() + 43);
        assert_ne!(token, new_token());
    }
}

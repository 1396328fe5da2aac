//! Accepted tokens: 256 random bits each, stored as SHA-256, compared in constant time.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pointsman_core::Tenant;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Role;
use crate::config::TokenDef;

/// All tokens that are accepted.
#[derive(Clone, Debug, Default)]
pub struct AcceptedTokens(Vec<TokenDef>);

/// The identifier of a token: its hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenHash([u8; 32]);

impl std::fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenId")
    }
}

/// The authenticated sender of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name of the token.
    pub token_name: String,
    pub role: Role,
    /// The only tenant that the caller may access; none if it may access all tenants.
    pub bound_tenant: Option<Tenant>,
    token_sha256: [u8; 32],
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { token_name: name, role, bound_tenant: tenant, token_sha256: _ } = self;
        f.debug_struct("Caller").field("name", name).field("role", role).field("tenant", tenant).finish()
    }
}

impl From<&TokenDef> for Caller {
    fn from(token: &TokenDef) -> Self {
        let TokenDef { name, role, tenant, sha256 } = token.clone();
        Self { token_name: name, role, bound_tenant: tenant, token_sha256: sha256 }
    }
}

impl Caller {
    pub(crate) fn token_hash(&self) -> TokenHash {
        TokenHash(self.token_sha256)
    }
}

impl AcceptedTokens {
    pub fn new(tokens: Vec<TokenDef>) -> Self {
        Self(tokens)
    }

    /// Finds the caller of a token. All tokens are compared, so that the time does not reveal which one matches.
    pub fn find_caller(&self, presented: &str) -> Option<Caller> {
        let hash = hash_token(presented);
        let mut found = None;
        for token in &self.0 {
            if bool::from(token.sha256.ct_eq(&hash)) {
                found = Some(token);
            }
        }
        found.map(Caller::from)
    }

    /// Whether the caller's token is still accepted, with the same name, role and tenant.
    pub(crate) fn is_token_still_accepted(&self, caller: &Caller) -> bool {
        self.0.iter().any(|token| Caller::from(token) == *caller)
    }
}

/// Hashes a token. Only the hash is stored, never the token.
pub fn hash_token(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Generates a random token of 256 bits.
pub fn generate_token() -> String {
    // Each UUID has 122 random bits from the system's generator.
    let mut digest = Sha256::new();
    for _ in 0..3 {
        digest.update(uuid::Uuid::new_v4().as_bytes());
    }
    format!("pm_{}", URL_SAFE_NO_PAD.encode(digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_def(name: &str, token: &str, role: Role) -> TokenDef {
        TokenDef { name: name.into(), role, tenant: None, sha256: hash_token(token) }
    }

    #[test]
    fn a_token_is_found_by_its_hash() {
        let tokens = AcceptedTokens::new(vec![
            token_def("a", "one", Role::Viewer),
            token_def("b", "two", Role::Admin),
        ]);
        assert_eq!(tokens.find_caller("one").unwrap().token_name, "a");
        assert_eq!(tokens.find_caller("two").unwrap().role, Role::Admin);
        for bad in ["", "three", "One", "one "] {
            assert!(tokens.find_caller(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn generated_tokens_are_long_and_unique() {
        let token = generate_token();
        assert_eq!(token.len(), "pm_".len() + 43);
        assert_ne!(token, generate_token());
    }
}

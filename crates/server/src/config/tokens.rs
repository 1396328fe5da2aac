//! Reads the section `auth`: the tokens of clients, stored as hashes.

use std::collections::HashMap;
use std::fmt;

use pointsman_core::{HandlerName, Tenant};
use sha2::{Digest, Sha256};

use super::decode::{AllowedKeys, CheckedMap, parse_scalar, read_list_items, read_text};
use super::fault::Findings;
use super::location::SettingLocation;
use super::secrets::SecretResolver;
use super::yaml::YamlNode;
use crate::auth::Role;

pub(super) const AUTH_KEYS: AllowedKeys =
    AllowedKeys { described_thing: "`auth`", names: &["tokens"], not_yet_supported: &[] };
const TOKEN_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "a token",
    names: &["name", "role", "tenant", "env", "file", "sha256"],
    not_yet_supported: &[],
};

/// The length in characters below which a token is warned about, because it can be guessed.
const MIN_RECOMMENDED_TOKEN_LENGTH: usize = 16;

/// A configured token: its hash, role and tenant.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenDef {
    pub name: String,
    pub role: Role,
    /// The only tenant that the token may act for; none: all tenants.
    pub tenant: Option<Tenant>,
    pub sha256: [u8; 32],
}

impl fmt::Debug for TokenDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, role, tenant, sha256: _ } = self;
        f.debug_struct("TokenDef").field("name", name).field("role", role).field("tenant", tenant).finish()
    }
}

pub(super) fn read_tokens(
    node: &YamlNode,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<Vec<TokenDef>> {
    let fields = CheckedMap::from_node_with_known_keys(node, &AUTH_KEYS, findings)?;
    let Some(list) = fields.get("tokens") else { return Some(vec![]) };
    let mut tokens = Vec::new();
    let mut names: HashMap<String, SettingLocation> = HashMap::new();
    let mut hashes: HashMap<[u8; 32], String> = HashMap::new();
    for item in read_list_items(list, "`tokens`", findings)? {
        let Some(token) = read_token(item, resolver, findings) else { continue };
        if let Some(first) = names.insert(token.name.clone(), item.location.clone()) {
            findings
                .add_fault(&item.location, format!("a token {:?} is already defined at {first}", token.name));
        }
        if let Some(other) = hashes.insert(token.sha256, token.name.clone()) {
            findings.add_fault(&item.location, format!("this is the same token as {other:?}"));
        }
        tokens.push(token);
    }
    Some(tokens)
}

fn read_token(node: &YamlNode, resolver: &mut SecretResolver, findings: &mut Findings) -> Option<TokenDef> {
    let fields = CheckedMap::from_node_with_known_keys(node, &TOKEN_KEYS, findings)?;
    let name = fields
        .get_required("name", "a token", findings)
        .and_then(|n| parse_scalar(n, findings, str::parse::<HandlerName>));
    let role = fields
        .get_required("role", "a token", findings)
        .and_then(|n| parse_scalar(n, findings, str::parse::<Role>));
    let tenant = match fields.get("tenant") {
        Some(node) => parse_scalar(node, findings, str::parse::<Tenant>).map(Some),
        None => Some(None),
    };
    let sha256 = read_token_hash(&fields, resolver, findings);
    Some(TokenDef { name: name?.to_string(), role: role?, tenant: tenant?, sha256: sha256? })
}

/// Reads the hash of a token from exactly one of `env`, `file` and `sha256`.
fn read_token_hash(
    fields: &CheckedMap,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<[u8; 32]> {
    let (token, at) = match (fields.get("env"), fields.get("file"), fields.get("sha256")) {
        (Some(node), None, None) => {
            let name = read_text(node, findings)?;
            (resolver.read_variable(name, node, findings)?, node)
        }
        (None, Some(node), None) => {
            let path = read_text(node, findings)?;
            (resolver.read_secret_file(path, node, findings)?, node)
        }
        (None, None, Some(node)) => return read_sha256(node, findings),
        _ => {
            let message = "a token needs exactly one of `env`, `file` and `sha256`";
            findings.add_fault(&fields.node.location, message);
            return None;
        }
    };
    if token.len() < MIN_RECOMMENDED_TOKEN_LENGTH {
        let message = format!(
            "the token has fewer than {MIN_RECOMMENDED_TOKEN_LENGTH} characters and can be guessed; use a longer one"
        );
        findings.add_warning(&at.location, message);
    }
    Some(Sha256::digest(token.as_bytes()).into())
}

fn read_sha256(node: &YamlNode, findings: &mut Findings) -> Option<[u8; 32]> {
    let digits = read_text(node, findings)?;
    let mut hash = [0; 32];
    let whole = digits.len() == 64 && digits.is_ascii();
    let read = whole.then(|| {
        for (byte, pair) in hash.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            let hex = pair.bytes().all(|b| b.is_ascii_hexdigit());
            *byte = u8::from_str_radix(pair, 16).ok().filter(|_| hex)?;
        }
        Some(hash)
    });
    let read = read.flatten();
    if read.is_none() {
        // The value may be the token itself, so that it is not repeated.
        findings.add_fault(&node.location, "a SHA-256 has 64 hexadecimal digits; this has something else");
    }
    read
}

#[cfg(test)]
mod tests {
    use super::super::secrets::Environment;
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    fn test_environment() -> Environment {
        [("SHOP_TOKEN", "a token that is long enough")].into_iter().collect()
    }

    #[test]
    fn a_token_from_a_variable_equals_the_token_given_by_its_hash() {
        let env = test_environment();
        let hex: String =
            Sha256::digest("a token that is long enough").iter().map(|byte| format!("{byte:02x}")).collect();
        let by_name = "tokens: [{name: shop, role: producer, tenant: shop, env: SHOP_TOKEN}]";
        let by_hash = format!("tokens: [{{name: shop, role: producer, tenant: shop, sha256: '{hex}'}}]");
        let read_one = |text: &str| {
            read_value_from_yaml(text, |n, f| read_tokens(n, &mut SecretResolver::new(&env), f)).unwrap()
        };
        assert_eq!(read_one(by_name), read_one(&by_hash));
        assert!(!format!("{:?}", read_one(by_name)).contains("sha256"));
    }

    #[test]
    fn every_fault_of_every_token_is_reported() {
        let env = test_environment();
        let text = "tokens:\n\
            - {name: a, role: root, env: SHOP_TOKEN}\n\
            - {name: b, role: viewer}\n\
            - {name: c, role: viewer, sha256: 'hunter2'}\n\
            - {name: d, role: viewer, env: SHOP_TOKEN}\n\
            - {name: d, role: admin, env: SHOP_TOKEN}\n";
        assert_eq!(
            fault_messages(text, |n, f| read_tokens(n, &mut SecretResolver::new(&env), f)),
            [
                "\"root\" is not a role; there are viewer, producer, worker, operator and admin",
                "a token needs exactly one of `env`, `file` and `sha256`",
                "a SHA-256 has 64 hexadecimal digits; this has something else",
                "a token \"d\" is already defined at test.yml:5:3",
                "this is the same token as \"d\"",
            ]
        );
    }
}

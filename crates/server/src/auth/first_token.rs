//! The first token: the admin token that a server without configured tokens generates.
//!
//! The server shows the token once, at its first start, and stores its hash: in a file beside a SQLite
//! store, or in the database that several nodes share. The plain token is never stored. If it is lost, delete the hash
//! and restart the server.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Role;
use super::tokens::{generate_token, hash_token};
use crate::config::TokenDef;

/// The token of a server without configured tokens.
#[derive(Clone, Debug)]
pub(crate) struct FirstToken {
    pub(crate) token_def: TokenDef,
    /// The plain token, if this process has just generated it. Otherwise only the hash is known.
    pub(crate) newly_generated_plain_text: Option<String>,
}

impl FirstToken {
    /// A token that was generated earlier, of which only the hash is stored.
    pub(crate) fn from_hash(sha256: [u8; 32]) -> Self {
        Self { token_def: first_token_def(sha256), newly_generated_plain_text: None }
    }
}

/// Generates a token that is not stored.
pub(crate) fn generate_first_token() -> FirstToken {
    let plain_text = generate_token();
    FirstToken {
        token_def: first_token_def(hash_token(&plain_text)),
        newly_generated_plain_text: Some(plain_text),
    }
}

/// Loads the hash of the token stored beside this store, or generates a token and stores its hash.
pub(crate) fn load_or_create_first_token(store: &Path) -> io::Result<FirstToken> {
    let path = token_hash_file_path(store);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let sha256 = decode_sha256_hex(text.trim()).ok_or_else(|| {
                let message =
                    format!("{} contains no token hash; delete it to get a new token", path.display());
                io::Error::new(io::ErrorKind::InvalidData, message)
            })?;
            Ok(FirstToken::from_hash(sha256))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = generate_first_token();
            write_token_hash(&path, &token.token_def.sha256)?;
            Ok(token)
        }
        Err(error) => Err(error),
    }
}

fn first_token_def(sha256: [u8; 32]) -> TokenDef {
    TokenDef { name: "first-start".into(), role: Role::Admin, tenant: None, sha256 }
}

fn token_hash_file_path(store: &Path) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(".token");
    name.into()
}

fn write_token_hash(path: &Path, sha256: &[u8; 32]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{}", encode_sha256_hex(sha256))?;
    file.sync_all()
}

pub(crate) fn encode_sha256_hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn decode_sha256_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_token_is_returned_once_and_its_hash_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("a.db");
        let first = load_or_create_first_token(&store).unwrap();
        let plain_text = first.newly_generated_plain_text.unwrap();
        let again = load_or_create_first_token(&store).unwrap();
        assert!(again.newly_generated_plain_text.is_none());
        assert_eq!(again.token_def.sha256, hash_token(&plain_text));
        assert!(!fs::read_to_string(token_hash_file_path(&store)).unwrap().contains(&plain_text));
    }

    #[cfg(unix)]
    #[test]
    fn token_file_is_readable_by_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("a.db");
        load_or_create_first_token(&store).unwrap();
        assert_eq!(fs::metadata(token_hash_file_path(&store)).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn error_of_a_corrupt_token_file_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("a.db");
        fs::write(token_hash_file_path(&store), "nonsense").unwrap();
        assert!(load_or_create_first_token(&store).unwrap_err().to_string().contains("a.db.token"));
    }
}

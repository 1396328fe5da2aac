//! Resolves references to secrets and recognizes values that may be secret.
//!
//! A configuration contains secrets by reference only: `env:NAME` is an environment variable, `file:PATH` a file
//! (relative to the folder of the file that names it). One newline at the end of a file is not part of the secret.
//!
//! A secret may be written into a configuration by mistake. Lines that could contain one are therefore never repeated
//! in a fault, and `config show` masks them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use pointsman_core::suggestion::suggest_name;
use sha2::{Digest, Sha256};

use super::decode::read_text;
use super::fault::Findings;
use super::location::SettingLocation;
use super::yaml::YamlNode;

/// The text shown instead of a secret.
pub(super) const MASK: &str = "***";

/// Keys whose values are or may be secrets.
const SECRET_KEYS: &[&str] = &[
    "secret",
    "secrets",
    "sha256",
    "token",
    "password",
    "passwd",
    "headers",
    "env",
    "authorization",
    "api_key",
];

/// The largest secret file, in bytes.
const MAX_SECRET_FILE_BYTES: u64 = 64 * 1024;

/// The environment variables of the process when the configuration was read, and whether it ran as root.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    is_root: bool,
}

impl Environment {
    /// The environment of this process. Variables that are not UTF-8 are left out.
    pub fn from_process() -> Self {
        let unicode = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables = std::env::vars_os().filter_map(unicode).collect();
        Self { variables, is_root: nix::unistd::geteuid().is_root() }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Whether the process runs as root, and so do its commands that name no other user.
    pub(super) fn is_root(&self) -> bool {
        self.is_root
    }

    #[cfg(test)]
    pub(super) fn with_root(self, is_root: bool) -> Self {
        Self { is_root, ..self }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, is_root: false }
    }
}

impl Environment {
    /// Adds these variables with placeholders as their values. Each placeholder is unique, and valid as a signing
    /// secret and as a token.
    pub(super) fn with_placeholder_secrets<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        for name in names {
            let digits: String = Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
            self.variables.insert(name.to_owned(), format!("whsec_{digits}"));
        }
        self
    }
}

/// Leaves out the values, which may be secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// Resolves references to secrets, and records the files and unset variables they named.
#[derive(Debug)]
pub(super) struct SecretResolver<'e> {
    pub(super) env: &'e Environment,
    /// The secret files. They are watched like the configuration, so that a secret can be replaced without a restart.
    pub(super) secret_files: Vec<PathBuf>,
    /// Variables that are not set, with the location of each reference.
    pub(super) unset_variables: Vec<(String, SettingLocation)>,
}

impl<'e> SecretResolver<'e> {
    pub(super) fn new(env: &'e Environment) -> Self {
        Self { env, secret_files: Vec::new(), unset_variables: Vec::new() }
    }

    /// Resolves a secret. A literal value instead of a reference is a fault.
    pub(super) fn resolve_secret(&mut self, node: &YamlNode, findings: &mut Findings) -> Option<String> {
        let reference = read_text(node, findings)?;
        match self.resolve_reference(reference, node, findings) {
            Some(found) => found,
            None => {
                let message = "a secret is given by reference: write `env:NAME` or `file:PATH`";
                findings.add_fault(&node.location, message);
                None
            }
        }
    }

    /// Resolves a reference, or returns the value itself.
    pub(super) fn resolve_value(&mut self, node: &YamlNode, findings: &mut Findings) -> Option<String> {
        let value = read_text(node, findings)?;
        self.resolve_reference(value, node, findings).unwrap_or_else(|| Some(value.to_owned()))
    }

    /// Resolves a reference. `None` if the text is not a reference, `Some(None)` if it cannot be resolved.
    fn resolve_reference(
        &mut self,
        reference: &str,
        node: &YamlNode,
        findings: &mut Findings,
    ) -> Option<Option<String>> {
        if let Some(name) = reference.strip_prefix("env:") {
            return Some(self.read_variable(name, node, findings));
        }
        reference.strip_prefix("file:").map(|path| self.read_secret_file(path, node, findings))
    }

    /// Reads an environment variable that a setting refers to. A variable that is not set or empty is a fault.
    pub(super) fn read_variable(
        &mut self,
        name: &str,
        node: &YamlNode,
        findings: &mut Findings,
    ) -> Option<String> {
        match self.env.get(name) {
            // The text may be the secret itself, so that it is not repeated.
            _ if !is_variable_name(name) => {
                findings.add_fault(&node.location, "this is not the name of an environment variable");
                None
            }
            Some("") => {
                findings.add_fault(&node.location, format!("the environment variable {name:?} is empty"));
                None
            }
            Some(value) => Some(value.to_owned()),
            None => {
                findings.add_fault(&node.location, variable_not_set_message(name));
                self.unset_variables.push((name.to_owned(), node.location.clone()));
                None
            }
        }
    }

    /// Reads the content of a secret file, without the newline at its end, and records its path.
    pub(super) fn read_secret_file(
        &mut self,
        path: &str,
        node: &YamlNode,
        findings: &mut Findings,
    ) -> Option<String> {
        let path = node.location.config_text.base_folder().join(path);
        let read = read_value_file(&path);
        self.secret_files.push(path.clone());
        match read {
            Ok(text) => Some(text),
            Err(reason) => {
                findings.add_fault(&node.location, format!("the file {} {reason}", path.display()));
                None
            }
        }
    }
}

pub(super) fn variable_not_set_message(name: &str) -> String {
    format!("the environment variable {name:?} is not set")
}

/// Reads a file that contains one value: not empty, and at most [`MAX_SECRET_FILE_BYTES`]. Removes the line break at
/// its end.
pub(super) fn read_value_file(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    if !size.is_file() || size.len() > MAX_SECRET_FILE_BYTES {
        return Err(format!("is not a file of at most {MAX_SECRET_FILE_BYTES} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() { Err("is empty".into()) } else { Ok(text.to_owned()) }
}

fn is_variable_name(text: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(rest)
}

/// Whether the value of this key may be a secret, even if the key is mistyped.
pub(super) fn key_may_have_secret_value(key: &str) -> bool {
    // These two contain settings, only some of which are secret.
    if matches!(key, "auth" | "tokens") {
        return false;
    }
    is_secret_name(key) || suggest_name(key, SECRET_KEYS.iter().copied()).is_some()
}

/// Whether a key, as it is written, is the name of a secret.
pub(super) fn is_secret_name(key: &str) -> bool {
    let lower = key.to_lowercase();
    let mentions_secret = ["secret", "token", "passw", "auth"].iter().any(|part| lower.contains(part));
    mentions_secret || SECRET_KEYS.contains(&key)
}

/// Whether a value is a URL with credentials. The password of a database URL may contain any character, and may be a
/// parameter.
pub(super) fn url_has_credentials(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else { return false };
    let schemes = ["postgres", "postgresql", "redis", "rediss", "+sentinel", "+cluster"];
    let database = schemes.iter().any(|name| scheme.ends_with(name));
    let authority = rest.split('/').next().unwrap_or_default();
    authority.contains('@') || (database && (rest.contains('@') || rest.contains("password=")))
}

/// Masks the value in a message if it contains credentials.
pub(super) fn mask_credentials(message: String, value: &str) -> String {
    if url_has_credentials(value) { message.replace(value, MASK) } else { message }
}

/// Whether a value must not be shown. References are safe to show, and seeing them helps.
pub(super) fn must_hide_value(key: &str, value: &str, secret: bool) -> bool {
    let variable =
        key == "env" && value.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    // `end` of a chain node is not a mistyped `env`.
    if key == "end" && matches!(value, "true" | "false") {
        return false;
    }
    let reference = value.starts_with("env:") || value.starts_with("file:") || variable;
    // These two are maps of settings; a scalar in their place can only be a token.
    let misplaced = matches!(key, "auth" | "tokens");
    ((secret || misplaced) && !reference) || url_has_credentials(value)
}

/// Whether a line of a text that could not be parsed may contain a secret: the line itself, or a key above it, has a
/// word that names secrets.
pub(super) fn line_may_contain_secret(text: &str, line: usize) -> bool {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let Some((last, above)) = lines.split_last() else { return false };
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mentions_secret = |line: &str| {
        let lower = line.to_lowercase();
        url_has_credentials(&lower)
            || SECRET_KEYS.iter().any(|key| lower.contains(key))
            || lower.contains("auth")
    };
    let mut inner = indent(last);
    let mut parents = above.iter().rev().filter(|line| {
        let parent = !line.trim().is_empty() && indent(line) < inner;
        if parent {
            inner = indent(line);
        }
        parent
    });
    mentions_secret(last)
        || parents.any(|line| mentions_secret(line))
        || above.last().is_some_and(|line| mentions_secret(line))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_value_from_yaml;
    use super::*;

    #[test]
    fn secret_references_are_resolved_and_literal_secrets_are_faults() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "from a file\n").unwrap();
        let env: Environment = [("KEY", "from the environment"), ("NONE", "")].into_iter().collect();
        let secret =
            |text: &str| read_value_from_yaml(text, |n, f| SecretResolver::new(&env).resolve_secret(n, f));
        assert_eq!(secret("env:KEY"), Ok("from the environment".into()));
        assert_eq!(secret(&format!("\"file:{}\"", path.display())), Ok("from a file".into()));
        assert_eq!(secret("env:NO"), Err(vec!["the environment variable \"NO\" is not set".into()]));
        assert_eq!(secret("env:NONE"), Err(vec!["the environment variable \"NONE\" is empty".into()]));
        let literal = secret("hunter2").unwrap_err();
        assert_eq!(literal, ["a secret is given by reference: write `env:NAME` or `file:PATH`"]);
    }

    #[test]
    fn debug_output_of_the_environment_has_no_values() {
        let env: Environment = [("KEY", "hunter2")].into_iter().collect();
        assert_eq!(format!("{env:?}"), r#"{"KEY"}"#);
    }

    #[test]
    fn secret_keys_are_recognized_even_if_mistyped() {
        for key in ["secret", "secert", "sha256", "Password", "access_token", "x-authorization"] {
            assert!(key_may_have_secret_value(key), "{key}");
        }
        for key in ["handlers", "timeout", "auth", "tokens", "tenant", "server", "dir", "role", "name"] {
            assert!(!key_may_have_secret_value(key), "{key}");
        }
    }

    #[test]
    fn unparsable_lines_that_mention_secrets_are_hidden() {
        let text = "handlers:\n  a:\n    secret: |\n      hunter2\n     bad\n";
        assert!(
            line_may_contain_secret(text, 3)
                && line_may_contain_secret(text, 4)
                && line_may_contain_secret(text, 5)
        );
        assert!(!line_may_contain_secret(text, 1) && !line_may_contain_secret(text, 2));
        assert!(line_may_contain_secret("store: postgres://u:p@h/db", 1));
        assert!(line_may_contain_secret("store: redis+sentinel://h/m?sentinel_password=p", 1));
    }
}

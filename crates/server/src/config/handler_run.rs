//! `run` of a handler or a source: an HTTP endpoint, a command, or external workers that pull its tasks.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use pointsman_engine::handlers::command::{CommandSpec, summarize_command};
use pointsman_engine::handlers::http::{NetworkAccess, WebhookSecret};
use url::Url;

use super::command_user::{CommandUser, read_command_user};
use super::decode::{
    AllowedKeys, CheckedMap, parse_scalar, read_duration, read_list_items, read_map_entries, read_text,
};
use super::digest;
use super::fault::Findings;
use super::secrets::SecretResolver;
use super::yaml::{YamlKind, YamlNode};

pub(super) const HTTP_RUN_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "an HTTP handler's `run`",
    names: &["http", "timeout", "secret", "secrets", "headers"],
    not_yet_supported: &[],
};
pub(super) const COMMAND_RUN_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "a command's `run`",
    names: &["command", "timeout", "env", "dir", "user", "group"],
    not_yet_supported: &[],
};
/// The keys of an HTTP handler's and of a command's `run` together, for a `run` that has both `http` and `command`, or
/// neither.
pub(super) const ANY_RUN_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "`run`",
    names: &["http", "command", "timeout", "secret", "secrets", "headers", "env", "dir", "user", "group"],
    not_yet_supported: &[],
};

/// The timeout of an attempt of an HTTP handler if none is configured.
const DEFAULT_HTTP_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout of an attempt of a command if none is configured.
const DEFAULT_COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// Headers that carry credentials: their values are given by reference only.
const CREDENTIAL_HEADERS: &[&str] =
    &["authorization", "proxy-authorization", "cookie", "x-api-key", "x-admin-token"];
/// Headers that Pointsman or the HTTP client sets itself.
const RESERVED_HEADERS: &[&str] =
    &["host", "content-length", "content-type", "transfer-encoding", "connection"];

/// The setting `run` of a handler or a source: how its tasks are run.
#[derive(Clone, Debug)]
pub enum HandlerRunConfig {
    Http(HttpRunConfig),
    Command(CommandRunConfig),
    /// External workers pull the handler's tasks.
    Pull,
}

impl HandlerRunConfig {
    /// The kind as one word: `http`, `command` or `pull`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Command(_) => "command",
            Self::Pull => "pull",
        }
    }

    /// The time after which an attempt fails. A pull worker has no such limit: it keeps a task as long as it renews
    /// its lease.
    pub fn timeout(&self) -> Duration {
        match self {
            Self::Http(http) => http.timeout,
            Self::Command(command) => command.timeout,
            Self::Pull => Duration::MAX,
        }
    }
}

#[derive(Clone)]
pub struct HttpRunConfig {
    pub url: Url,
    pub timeout: Duration,
    /// The signing secrets, newest first.
    pub signing_secrets: Vec<WebhookSecret>,
    /// The hash of each signing secret, used to detect that a secret was replaced.
    pub(super) signing_secret_hashes: Vec<String>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl fmt::Debug for HttpRunConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, timeout, signing_secrets: _, signing_secret_hashes: _, headers: _ } = self;
        f.debug_struct("HttpRun")
            .field("origin", &url.origin().ascii_serialization())
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub struct CommandRunConfig {
    pub spec: CommandSpec,
    pub timeout: Duration,
    /// The user and group of `spec.run_as`, with their names.
    pub(super) user: Option<CommandUser>,
}

impl fmt::Debug for CommandRunConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spec: CommandSpec { argv, working_dir: dir, env: _, run_as }, timeout, user: _ } = self;
        let mut output = f.debug_struct("CommandRun");
        output.field("command", &summarize_command(argv)).field("dir", dir).field("run_as", run_as);
        output.field("timeout", timeout).finish_non_exhaustive()
    }
}

pub(super) fn read_handler_run(
    node: &YamlNode,
    network: &NetworkAccess,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<HandlerRunConfig> {
    if let YamlKind::Scalar { text, .. } = &node.kind {
        if text == "pull" {
            return Some(HandlerRunConfig::Pull);
        }
        // The value is not repeated: it is often a URL, which may contain a password.
        let message =
            "this is not a way to run a handler; write `{http: URL}`, `{command: [PROGRAM, …]}` or `pull`";
        findings.add_fault(&node.location, message);
        return None;
    }
    if let Some(node) = node.get("pull") {
        findings.add_fault(&node.location, "a pull handler has no other settings; write `run: pull`");
        return None;
    }
    match (node.get("http"), node.get("command")) {
        (Some(_), None) => read_http_run(node, network, resolver, findings).map(HandlerRunConfig::Http),
        (None, Some(_)) => read_command_run(node, resolver, findings).map(HandlerRunConfig::Command),
        (http, _) => {
            let fields = CheckedMap::from_node_with_known_keys(node, &ANY_RUN_KEYS, findings)?;
            let message = match http {
                Some(_) => "a handler runs either `http` or a `command`, not both",
                None => "`run` needs `http` or `command`, or is the word `pull`",
            };
            findings.add_fault(&node.location, message);
            check_run_of_unclear_kind(&fields, network, resolver, findings);
            None
        }
    }
}

/// Reports the faults of all settings of a `run` with neither or both of `http` and `command`.
fn check_run_of_unclear_kind(
    fields: &CheckedMap,
    network: &NetworkAccess,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) {
    fields.get("http").and_then(|n| read_target_url(n, network, findings));
    fields.get("command").and_then(|n| read_argv(n, findings));
    read_timeout(fields, DEFAULT_HTTP_TIMEOUT, findings);
    read_signing_secrets(fields, resolver, findings);
    fields.get("headers").and_then(|n| read_headers(n, resolver, findings));
    fields.get("env").and_then(|n| read_environment(n, resolver, findings));
    fields.get("dir").and_then(|n| read_text(n, findings));
    read_command_user(fields, findings);
}

fn read_http_run(
    node: &YamlNode,
    network: &NetworkAccess,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<HttpRunConfig> {
    let fields = CheckedMap::from_node_with_known_keys(node, &HTTP_RUN_KEYS, findings)?;
    let url = fields.get("http").and_then(|n| read_target_url(n, network, findings));
    let timeout = read_timeout(&fields, DEFAULT_HTTP_TIMEOUT, findings);
    let secrets = read_signing_secrets(&fields, resolver, findings);
    let headers = match fields.get("headers") {
        Some(node) => read_headers(node, resolver, findings),
        None => Some(vec![]),
    };
    let (secrets, secret_hashes) = secrets?.into_iter().unzip();
    Some(HttpRunConfig {
        url: url?,
        timeout,
        signing_secrets: secrets,
        signing_secret_hashes: secret_hashes,
        headers: headers?,
    })
}

/// A URL that `network` allows, as far as that is known without resolving its host.
fn read_target_url(node: &YamlNode, network: &NetworkAccess, findings: &mut Findings) -> Option<Url> {
    let url = parse_scalar(node, findings, parse_target_url)?;
    if let Err(refused) = network.check_url_address(&url) {
        findings.add_fault(&node.location, refused.to_string());
    }
    Some(url)
}

fn parse_target_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("this is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("a target is an http:// or https:// URL with a host".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL cannot contain credentials; give them as a header, by reference".into());
    }
    Ok(url)
}

fn read_timeout(fields: &CheckedMap, default: Duration, findings: &mut Findings) -> Duration {
    fields.read_or_default("timeout", default, findings, |n, f| read_duration(n, f, Duration::from_millis(1)))
}

/// Reads the signing secrets, each with its hash. There are several while a secret is being replaced.
fn read_signing_secrets(
    fields: &CheckedMap,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<Vec<(WebhookSecret, String)>> {
    let nodes = match (fields.get("secret"), fields.get("secrets")) {
        (Some(_), Some(node)) => {
            findings.add_fault(&node.location, "give either `secret` or `secrets`");
            return None;
        }
        (Some(node), None) => std::slice::from_ref(node),
        (None, Some(node)) => read_list_items(node, "`secrets`", findings)?,
        (None, None) => &[],
    };
    let mut read_secret = |node: &YamlNode| {
        let text = resolver.resolve_secret(node, findings)?;
        let secret = text.parse::<WebhookSecret>();
        let secret = secret.map_err(|error| findings.add_fault(&node.location, error.to_string())).ok()?;
        Some((secret, digest::sha256_hex(text.as_bytes())))
    };
    let read: Vec<(WebhookSecret, String)> = nodes.iter().filter_map(&mut read_secret).collect();
    (read.len() == nodes.len()).then_some(read)
}

type HeaderList = Vec<(HeaderName, HeaderValue)>;

fn read_headers(
    node: &YamlNode,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<HeaderList> {
    let mut headers = HeaderList::new();
    for entry in read_map_entries(node, "`headers`", findings)? {
        let Ok(name) = HeaderName::from_bytes(entry.key.as_bytes()) else {
            findings
                .add_fault(&entry.key_location, format!("{:?} cannot be the name of a header", entry.key));
            continue;
        };
        let has_reserved_prefix =
            ["ce-", "webhook-", "pointsman-"].iter().any(|prefix| name.as_str().starts_with(prefix));
        if has_reserved_prefix || RESERVED_HEADERS.contains(&name.as_str()) {
            findings.add_fault(
                &entry.key_location,
                format!("the header `{name}` is written by Pointsman itself"),
            );
            continue;
        }
        let value = if CREDENTIAL_HEADERS.contains(&name.as_str()) {
            resolver.resolve_secret(&entry.value, findings)
        } else {
            resolver.resolve_value(&entry.value, findings)
        };
        match value.map(|value| HeaderValue::from_str(&value)) {
            Some(Ok(value)) => headers.push((name, value)),
            Some(Err(_)) => findings.add_fault(&entry.value.location, "this cannot be the value of a header"),
            None => {}
        }
    }
    Some(headers)
}

fn read_command_run(
    node: &YamlNode,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<CommandRunConfig> {
    let fields = CheckedMap::from_node_with_known_keys(node, &COMMAND_RUN_KEYS, findings)?;
    let argv = fields.get("command").and_then(|n| read_argv(n, findings));
    let timeout = read_timeout(&fields, DEFAULT_COMMAND_TIMEOUT, findings);
    let env = match fields.get("env") {
        Some(node) => read_environment(node, resolver, findings),
        None => Some(BTreeMap::new()),
    };
    let folder = to_absolute_path(node.location.config_text.base_folder());
    let dir = match fields.get("dir") {
        Some(node) => read_text(node, findings)
            .map(|dir| to_absolute_path(&node.location.config_text.base_folder().join(dir))),
        None => Some(folder),
    };
    let user = read_command_user(&fields, findings)?;
    let run_as = user.as_ref().map(|user| user.run_as.clone());
    let spec = CommandSpec { argv: argv?, env: env?, working_dir: Some(dir?), run_as };
    Some(CommandRunConfig { spec, timeout, user })
}

/// Reads a program and its arguments. A path of a program is relative to the folder of the configuration file; a name
/// without a slash is searched in `PATH`.
fn read_argv(node: &YamlNode, findings: &mut Findings) -> Option<Vec<String>> {
    let parts = read_list_items(node, "a command", findings)?;
    let mut argv: Vec<String> =
        parts.iter().filter_map(|part| read_text(part, findings).map(str::to_owned)).collect();
    if let Some(at) = argv.iter().position(|part| part.contains('\0')) {
        findings.add_fault(&parts[at].location, "an argument cannot contain NUL characters");
    }
    let Some(program) = argv.first_mut().filter(|program| !program.is_empty()) else {
        findings.add_fault(&node.location, "a command needs at least the name of a program");
        return None;
    };
    if program.contains('/') {
        let from = node.location.config_text.base_folder();
        *program = to_absolute_path(&from.join(&*program)).to_string_lossy().into_owned();
    }
    Some(argv)
}

/// Makes a path absolute. If the working folder is unknown, the path is returned unchanged.
fn to_absolute_path(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Reads a map of variable names to values or references, or a list of variables to pass on unchanged.
fn read_environment(
    node: &YamlNode,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<BTreeMap<String, String>> {
    let mut env = BTreeMap::new();
    if let YamlKind::List(names) = &node.kind {
        for item in names {
            let Some(name) = read_text(item, findings) else { continue };
            if let Some(value) = resolver.read_variable(name, item, findings) {
                env.insert(name.to_owned(), value);
            }
        }
        return Some(env);
    }
    for entry in read_map_entries(node, "`env`", findings)? {
        if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            findings
                .add_fault(&entry.key_location, format!("{:?} cannot be the name of a variable", entry.key));
        } else if entry.key.starts_with("POINTSMAN_") {
            findings.add_fault(&entry.key_location, "variables that begin with `POINTSMAN_` are reserved");
        }
        match resolver.resolve_value(&entry.value, findings) {
            Some(value) if value.contains('\0') => {
                findings.add_fault(&entry.value.location, "a variable cannot contain NUL characters");
            }
            Some(value) => drop(env.insert(entry.key.clone(), value)),
            None => {}
        }
    }
    Some(env)
}

#[cfg(test)]
mod tests {
    use pointsman_engine::handlers::command::RunAsUser;

    use super::super::location::{ConfigText, SettingLocation, SettingOrigin};
    use super::super::secrets::Environment;
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::super::yaml;
    use super::*;

    fn read_run_of_any_kind(node: &YamlNode, findings: &mut Findings) -> Option<HandlerRunConfig> {
        let env: Environment = [("KEY", "value"), ("BAD", "whsec_AAAA")].into_iter().collect();
        read_handler_run(node, &NetworkAccess::default(), &mut SecretResolver::new(&env), findings)
    }

    fn read_command_run_from_yaml(text: &str) -> CommandRunConfig {
        match read_value_from_yaml(text, read_run_of_any_kind) {
            Ok(HandlerRunConfig::Command(command)) => command,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn program_paths_are_relative_to_the_config_file_and_bare_names_use_path() {
        let working_dir = std::env::current_dir().unwrap();
        let command = read_command_run_from_yaml("{command: [./a.sh, ./b], timeout: 5s}");
        assert_eq!(command.spec.argv, [working_dir.join("a.sh").to_str().unwrap(), "./b"]);
        assert_eq!((command.spec.working_dir, command.timeout), (Some(working_dir), Duration::from_secs(5)));
        assert_eq!(read_command_run_from_yaml("{command: [sh]}").spec.argv, ["sh"]);
    }

    #[test]
    fn env_of_a_command_is_a_list_of_variables_or_a_map_with_references() {
        let env = |text| read_command_run_from_yaml(text).spec.env.into_iter().collect::<Vec<_>>();
        assert_eq!(env("{command: [sh], env: [KEY]}"), [("KEY".to_owned(), "value".to_owned())]);
        assert_eq!(env("{command: [sh], env: {A: 1, B: env:KEY}}")[1], ("B".to_owned(), "value".to_owned()));
    }

    #[test]
    fn user_and_group_of_a_command_must_exist_and_be_permitted() {
        let user = "{command: [sh], user: pointsman-no-such-user}";
        assert!(
            fault_messages(user, read_run_of_any_kind)[0]
                .starts_with("there is no user \"pointsman-no-such-user\" on this machine")
        );
        let group = "{command: [sh], group: pointsman-no-such-group}";
        assert!(
            fault_messages(group, read_run_of_any_kind)[0]
                .starts_with("there is no group \"pointsman-no-such-group\"")
        );
        assert_eq!(
            fault_messages("{command: [sh], user: [], group: 1}", read_run_of_any_kind),
            ["expected text, found a list"]
        );
        let both = "{command: [sh], user: 65534, group: 65533}";
        match RunAsUser::find(Some("65534"), Some("65533")) {
            Ok(run_as) => assert_eq!(read_command_run_from_yaml(both).spec.run_as, Some(run_as)),
            Err(error) => assert_eq!(fault_messages(both, read_run_of_any_kind), [error.to_string()]),
        }
        assert_eq!(
            fault_messages("{http: 'https://x.example/', user: nobody}", read_run_of_any_kind),
            ["unknown setting \"user\" of an HTTP handler's `run`"]
        );
    }

    #[test]
    fn every_fault_of_a_command_run_is_reported() {
        assert_eq!(
            fault_messages(
                "{command: sh, env: {POINTSMAN_X: 1, 'A=B': 2, C: env:NO}, dir: [], headers: {}}",
                read_run_of_any_kind
            ),
            [
                "a command must be a list, not a plain value",
                "variables that begin with `POINTSMAN_` are reserved",
                "\"A=B\" cannot be the name of a variable",
                "the environment variable \"NO\" is not set",
                "expected text, found a list",
                "unknown setting \"headers\" of a command's `run`",
            ]
        );
    }

    #[test]
    fn every_fault_of_an_http_run_is_reported() {
        let text = "http: 'http://10.0.0.1/'\n\
                    timeout: 0s\n\
                    secrets: [env:BAD, plain]\n\
                    headers: {ce-id: x, 'a b': x, cookie: x, x-a: \"a\\nb\", Host: x}\n";
        assert_eq!(
            fault_messages(text, read_run_of_any_kind),
            [
                "10.0.0.1 may not be reached: it is a private address; the setting `network.allow` can allow it",
                "0s is too short; the least is 1ms",
                "a webhook secret has 24 to 64 bytes, this one has 3",
                "a secret is given by reference: write `env:NAME` or `file:PATH`",
                "the header `ce-id` is written by Pointsman itself",
                "\"a b\" cannot be the name of a header",
                "a secret is given by reference: write `env:NAME` or `file:PATH`",
                "this cannot be the value of a header",
                "the header `host` is written by Pointsman itself",
            ]
        );
    }

    #[test]
    fn settings_are_checked_even_if_http_or_command_is_mistyped_or_both_are_set() {
        assert_eq!(
            fault_messages(
                "{htp: 'https://x.example/', timeout: 10x, secret: plain, dir: []}",
                read_run_of_any_kind
            ),
            [
                "`run` needs `http` or `command`, or is the word `pull`",
                "unknown setting \"htp\" of `run`; did you mean `http`?",
                "\"10x\" is not a duration; write one like `250ms`, `60s`, `1h30m`, `30d` or `PT60S`",
                "a secret is given by reference: write `env:NAME` or `file:PATH`",
                "expected text, found a list",
            ]
        );
        assert_eq!(
            fault_messages(
                "{http: ftp://x, command: [], timeout: 10x, env: {A: env:NO}, colour: red}",
                read_run_of_any_kind
            ),
            [
                "a handler runs either `http` or a `command`, not both",
                "a target is an http:// or https:// URL with a host",
                "a command needs at least the name of a program",
                "\"10x\" is not a duration; write one like `250ms`, `60s`, `1h30m`, `30d` or `PT60S`",
                "the environment variable \"NO\" is not set",
                "unknown setting \"colour\" of `run`",
            ]
        );
    }

    #[test]
    fn an_unknown_user_or_group_is_reported_where_it_is_named() {
        let locate = |text: &str| {
            let mut findings = Findings::default();
            let config_text = ConfigText::new(SettingOrigin::File("test.yml".into()), 0, text.into());
            let run = yaml::parse_yaml(&config_text, &mut findings)
                .and_then(|node| read_run_of_any_kind(&node, &mut findings));
            let faults = findings.into_result(run, &SettingLocation::whole_text(&config_text)).unwrap_err();
            faults.iter().map(|fault| fault.location()).collect::<Vec<_>>()
        };
        assert_eq!(locate("{command: [sh], user: root, group: no-such}"), ["test.yml:1:36"]);
        assert_eq!(locate("{command: [sh], group: no-such, user: root}"), ["test.yml:1:24"]);
        assert_eq!(locate("{command: [sh], user: no-such, group: root}"), ["test.yml:1:23"]);
        assert_eq!(
            locate("{command: [sh], user: no-such, group: no-such}"),
            ["test.yml:1:23", "test.yml:1:39"],
            "both are reported"
        );
    }

    #[test]
    fn run_is_exactly_one_of_http_command_or_pull() {
        for (text, want) in [
            ("{pull: true}", "a pull handler has no other settings; write `run: pull`"),
            (
                "push",
                "this is not a way to run a handler; write `{http: URL}`, `{command: [PROGRAM, …]}` or `pull`",
            ),
            (
                "{http: 'https://x.example/', command: [sh]}",
                "a handler runs either `http` or a `command`, not both",
            ),
            ("{timeout: 1s}", "`run` needs `http` or `command`, or is the word `pull`"),
            (
                "{http: 'https://me:pw@x.example/'}",
                "a URL cannot contain credentials; give them as a header, by reference",
            ),
            ("{http: /index}", "this is not a URL: relative URL without a base"),
        ] {
            assert_eq!(fault_messages(text, read_run_of_any_kind), [want], "{text}");
        }
        assert!(matches!(read_value_from_yaml("pull", read_run_of_any_kind), Ok(HandlerRunConfig::Pull)));
    }
}

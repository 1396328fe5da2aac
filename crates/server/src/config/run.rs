//! `run` of a handler or a source: an HTTP endpoint, a command, or workers elsewhere that fetch its tasks.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use pointsman_engine::handlers::command::{CommandSpec, RunAs, summarize_command};
use pointsman_engine::handlers::http::{NetworkAccess, WebhookSecret};
use url::Url;

use super::decode::{Fields, Keys, duration, entries, items, parsed, text};
use super::digest;
use super::fault::Findings;
use super::secret::Vault;
use super::yaml::{Kind, Node};

pub(super) const HTTP: Keys = Keys {
    of: "an HTTP handler's `run`",
    known: &["http", "timeout", "secret", "secrets", "headers"],
    later: &[],
};
pub(super) const COMMAND: Keys = Keys {
    of: "a command's `run`",
    known: &["command", "timeout", "env", "dir", "user", "group"],
    later: &[],
};
/// All of them, for those who do not know yet which kind it is.
pub(super) const EITHER: Keys = Keys {
    of: "`run`",
    known: &["http", "command", "timeout", "secret", "secrets", "headers", "env", "dir", "user", "group"],
    later: &[],
};

/// How long an attempt may take if nothing is said.
const HTTP_TIMEOUT: Duration = Duration::from_secs(30);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// Headers that carry credentials: their values are given by reference only.
const CREDENTIALS: &[&str] =
    &["authorization", "proxy-authorization", "cookie", "x-api-key", "x-admin-token"];
/// Headers that Pointsman or the connection itself writes.
const OURS: &[&str] = &["host", "content-length", "content-type", "transfer-encoding", "connection"];

/// How a handler is run.
#[derive(Clone, Debug)]
pub enum Run {
    Http(HttpRun),
    Command(CommandRun),
    /// Workers elsewhere fetch its tasks.
    Pull,
}

impl Run {
    /// One word for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Command(_) => "command",
            Self::Pull => "pull",
        }
    }

    /// An attempt that takes longer has failed. A worker has no such limit: it keeps a task as long as it
    /// renews its lease.
    pub fn timeout(&self) -> Duration {
        match self {
            Self::Http(http) => http.timeout,
            Self::Command(command) => command.timeout,
            Self::Pull => Duration::MAX,
        }
    }
}

#[derive(Clone)]
pub struct HttpRun {
    pub url: Url,
    pub timeout: Duration,
    /// The signing secrets, newest first.
    pub secrets: Vec<WebhookSecret>,
    /// A hash of each of them, by which a replaced one is noticed.
    pub(super) prints: Vec<String>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl fmt::Debug for HttpRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, timeout, secrets: _, prints: _, headers: _ } = self;
        f.debug_struct("HttpRun")
            .field("origin", &url.origin().ascii_serialization())
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub struct CommandRun {
    pub spec: CommandSpec,
    pub timeout: Duration,
}

impl fmt::Debug for CommandRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spec: CommandSpec { argv, dir, env: _, run_as }, timeout } = self;
        let mut shown = f.debug_struct("CommandRun");
        shown.field("command", &summarize_command(argv)).field("dir", dir).field("run_as", run_as);
        shown.field("timeout", timeout).finish_non_exhaustive()
    }
}

pub(super) fn read(
    node: &Node,
    network: &NetworkAccess,
    vault: &mut Vault,
    findings: &mut Findings,
) -> Option<Run> {
    if let Kind::Scalar { text, .. } = &node.kind {
        if text == "pull" {
            return Some(Run::Pull);
        }
        // It is not repeated, for it may hold a password, being a URL more often than not.
        let message = "this is not a way to run; write `{http: URL}`, `{command: [PROGRAM, …]}` or `pull`";
        findings.fault(&node.place, message);
        return None;
    }
    if let Some(node) = node.get("pull") {
        findings.fault(&node.place, "a handler that is pulled has nothing to set; write `run: pull`");
        return None;
    }
    match (node.get("http"), node.get("command")) {
        (Some(_), None) => http(node, network, vault, findings).map(Run::Http),
        (None, Some(_)) => command(node, vault, findings).map(Run::Command),
        (Some(_), Some(_)) => {
            findings.fault(&node.place, "a handler runs either `http` or a `command`, not both");
            None
        }
        (None, None) => {
            Fields::open(node, &EITHER, findings)?;
            findings.fault(&node.place, "`run` needs `http` or `command`, or is the word `pull`");
            None
        }
    }
}

fn http(node: &Node, network: &NetworkAccess, vault: &mut Vault, findings: &mut Findings) -> Option<HttpRun> {
    let fields = Fields::open(node, &HTTP, findings)?;
    let url = fields.get("http").and_then(|n| {
        let url = parsed(n, findings, target)?;
        if let Err(refused) = network.check_literal(&url) {
            findings.fault(&n.place, refused.to_string());
        }
        Some(url)
    });
    let timeout = timeout(&fields, HTTP_TIMEOUT, findings);
    let secrets = secrets(&fields, vault, findings);
    let headers = match fields.get("headers") {
        Some(node) => headers(node, vault, findings),
        None => Some(vec![]),
    };
    let (secrets, prints) = secrets?.into_iter().unzip();
    Some(HttpRun { url: url?, timeout, secrets, prints, headers: headers? })
}

fn target(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("this is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("a target is an http:// or https:// URL with a host".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL holds no credentials; give them as a header, by reference".into());
    }
    Ok(url)
}

fn timeout(fields: &Fields, usual: Duration, findings: &mut Findings) -> Duration {
    fields.or("timeout", usual, findings, |n, f| duration(n, f, Duration::from_millis(1)))
}

/// One secret, or several while they are being replaced; each with its hash.
fn secrets(
    fields: &Fields,
    vault: &mut Vault,
    findings: &mut Findings,
) -> Option<Vec<(WebhookSecret, String)>> {
    let nodes = match (fields.get("secret"), fields.get("secrets")) {
        (Some(_), Some(node)) => {
            findings.fault(&node.place, "give either `secret` or `secrets`");
            return None;
        }
        (Some(node), None) => std::slice::from_ref(node),
        (None, Some(node)) => items(node, "`secrets`", findings)?,
        (None, None) => &[],
    };
    let mut one = |node: &Node| {
        let text = vault.secret(node, findings)?;
        let secret = text.parse::<WebhookSecret>();
        let secret = secret.map_err(|error| findings.fault(&node.place, error.to_string())).ok()?;
        Some((secret, digest::hex(text.as_bytes())))
    };
    let read: Vec<(WebhookSecret, String)> = nodes.iter().filter_map(&mut one).collect();
    (read.len() == nodes.len()).then_some(read)
}

type Headers = Vec<(HeaderName, HeaderValue)>;

fn headers(node: &Node, vault: &mut Vault, findings: &mut Findings) -> Option<Headers> {
    let mut headers = Headers::new();
    for entry in entries(node, "`headers`", findings)? {
        let Ok(name) = HeaderName::from_bytes(entry.key.as_bytes()) else {
            findings.fault(&entry.at, format!("{:?} cannot be the name of a header", entry.key));
            continue;
        };
        let ours = ["ce-", "webhook-", "pointsman-"].iter().any(|prefix| name.as_str().starts_with(prefix));
        if ours || OURS.contains(&name.as_str()) {
            findings.fault(&entry.at, format!("the header `{name}` is written by Pointsman itself"));
            continue;
        }
        let value = if CREDENTIALS.contains(&name.as_str()) {
            vault.secret(&entry.value, findings)
        } else {
            vault.value(&entry.value, findings)
        };
        match value.map(|value| HeaderValue::from_str(&value)) {
            Some(Ok(value)) => headers.push((name, value)),
            Some(Err(_)) => findings.fault(&entry.value.place, "this cannot be the value of a header"),
            None => {}
        }
    }
    Some(headers)
}

fn command(node: &Node, vault: &mut Vault, findings: &mut Findings) -> Option<CommandRun> {
    let fields = Fields::open(node, &COMMAND, findings)?;
    let argv = fields.get("command").and_then(|n| argv(n, findings));
    let timeout = timeout(&fields, COMMAND_TIMEOUT, findings);
    let env = match fields.get("env") {
        Some(node) => environment(node, vault, findings),
        None => Some(BTreeMap::new()),
    };
    let folder = absolute(node.place.source.folder());
    let dir = match fields.get("dir") {
        Some(node) => text(node, findings).map(|dir| absolute(&node.place.source.folder().join(dir))),
        None => Some(folder),
    };
    let run_as = run_as(&fields, findings);
    let spec = CommandSpec { argv: argv?, env: env?, dir: Some(dir?), run_as: run_as? };
    Some(CommandRun { spec, timeout })
}

/// The user and group to run as, if either is given. `None` if they cannot be used.
fn run_as(fields: &Fields, findings: &mut Findings) -> Option<Option<RunAs>> {
    let (user, group) = (fields.get("user"), fields.get("group"));
    let Some(first) = user.or(group) else { return Some(None) };
    let mut name = |node: Option<&Node>| match node {
        Some(node) => text(node, findings).map(|name| Some(name.to_owned())),
        None => Some(None),
    };
    let (user, group) = (name(user)?, name(group)?);
    match RunAs::find(user.as_deref(), group.as_deref()) {
        Ok(found) => Some(Some(found)),
        Err(error) => {
            findings.fault(&first.place, error.to_string());
            None
        }
    }
}

/// A program given by a path is found from the folder of the file that names it; one without a slash is looked
/// for in `PATH`.
fn argv(node: &Node, findings: &mut Findings) -> Option<Vec<String>> {
    let parts = items(node, "a command", findings)?;
    let mut argv: Vec<String> =
        parts.iter().filter_map(|part| text(part, findings).map(str::to_owned)).collect();
    if let Some(at) = argv.iter().position(|part| part.contains('\0')) {
        findings.fault(&parts[at].place, "an argument holds no NUL characters");
    }
    let Some(program) = argv.first_mut().filter(|program| !program.is_empty()) else {
        findings.fault(&node.place, "a command needs at least the name of a program");
        return None;
    };
    if program.contains('/') {
        let from = node.place.source.folder();
        *program = absolute(&from.join(&*program)).to_string_lossy().into_owned();
    }
    Some(argv)
}

/// An absolute path without `.` in it. Where even the working folder is unknown, the path stays as it is.
fn absolute(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A map of names to values or references, or a list of variables to pass on as they are.
fn environment(node: &Node, vault: &mut Vault, findings: &mut Findings) -> Option<BTreeMap<String, String>> {
    let mut env = BTreeMap::new();
    if let Kind::List(names) = &node.kind {
        for item in names {
            let Some(name) = text(item, findings) else { continue };
            if let Some(value) = vault.variable(name, item, findings) {
                env.insert(name.to_owned(), value);
            }
        }
        return Some(env);
    }
    for entry in entries(node, "`env`", findings)? {
        if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            findings.fault(&entry.at, format!("{:?} cannot be the name of a variable", entry.key));
        } else if entry.key.starts_with("POINTSMAN_") {
            findings.fault(&entry.at, "variables that begin with `POINTSMAN_` are Pointsman's own");
        }
        match vault.value(&entry.value, findings) {
            Some(value) if value.contains('\0') => {
                findings.fault(&entry.value.place, "a variable holds no NUL characters");
            }
            Some(value) => drop(env.insert(entry.key.clone(), value)),
            None => {}
        }
    }
    Some(env)
}

#[cfg(test)]
mod tests {
    use super::super::secret::Env;
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    fn any(node: &Node, findings: &mut Findings) -> Option<Run> {
        let env: Env = [("KEY", "value"), ("BAD", "whsec_AAAA")].into_iter().collect();
        read(node, &NetworkAccess::default(), &mut Vault::new(&env), findings)
    }

    fn command_of(text: &str) -> CommandRun {
        match read_text(text, any) {
            Ok(Run::Command(command)) => command,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn programs_by_path_are_found_from_the_file_and_others_in_the_path() {
        let here = std::env::current_dir().unwrap();
        let command = command_of("{command: [./a.sh, ./b], timeout: 5s}");
        assert_eq!(command.spec.argv, [here.join("a.sh").to_str().unwrap(), "./b"]);
        assert_eq!((command.spec.dir, command.timeout), (Some(here), Duration::from_secs(5)));
        assert_eq!(command_of("{command: [sh]}").spec.argv, ["sh"]);
    }

    #[test]
    fn a_command_finds_what_its_env_names() {
        let env = |text| command_of(text).spec.env.into_iter().collect::<Vec<_>>();
        assert_eq!(env("{command: [sh], env: [KEY]}"), [("KEY".to_owned(), "value".to_owned())]);
        assert_eq!(env("{command: [sh], env: {A: 1, B: env:KEY}}")[1], ("B".to_owned(), "value".to_owned()));
    }

    #[test]
    fn a_command_runs_as_a_user_that_exists_where_the_process_may_switch() {
        let user = "{command: [sh], user: pointsman-no-such-user}";
        assert!(
            faults_of(user, any)[0]
                .starts_with("there is no user \"pointsman-no-such-user\" on this machine")
        );
        let group = "{command: [sh], group: pointsman-no-such-group}";
        assert!(faults_of(group, any)[0].starts_with("there is no group \"pointsman-no-such-group\""));
        assert_eq!(faults_of("{command: [sh], user: [], group: 1}", any), ["expected text, found a list"]);
        let both = "{command: [sh], user: 65534, group: 65533}";
        match RunAs::find(Some("65534"), Some("65533")) {
            Ok(run_as) => assert_eq!(command_of(both).spec.run_as, Some(run_as)),
            Err(refused) => assert_eq!(faults_of(both, any), [refused.to_string()]),
        }
        assert_eq!(
            faults_of("{http: 'https://x.example/', user: nobody}", any),
            ["unknown setting \"user\" of an HTTP handler's `run`"]
        );
    }

    #[test]
    fn every_fault_of_a_command_is_told() {
        assert_eq!(
            faults_of("{command: sh, env: {POINTSMAN_X: 1, 'A=B': 2, C: env:NO}, dir: [], headers: {}}", any),
            [
                "a command must be a list, not a plain value",
                "variables that begin with `POINTSMAN_` are Pointsman's own",
                "\"A=B\" cannot be the name of a variable",
                "the environment variable \"NO\" is not set",
                "expected text, found a list",
                "unknown setting \"headers\" of a command's `run`",
            ]
        );
    }

    #[test]
    fn every_fault_of_an_http_handler_is_told() {
        let text = "http: 'http://10.0.0.1/'\n\
                    timeout: 0s\n\
                    secrets: [env:BAD, plain]\n\
                    headers: {ce-id: x, 'a b': x, cookie: x, x-a: \"a\\nb\", Host: x}\n";
        assert_eq!(
            faults_of(text, any),
            [
                "10.0.0.1 may not be reached: it is a private address; the setting `network.allow` can allow it",
                "0s is too short; the least is 1ms",
                "a webhook secret holds 24 to 64 bytes, this one 3",
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
    fn a_handler_runs_in_one_way() {
        for (text, want) in [
            ("{pull: true}", "a handler that is pulled has nothing to set; write `run: pull`"),
            ("push", "this is not a way to run; write `{http: URL}`, `{command: [PROGRAM, …]}` or `pull`"),
            (
                "{http: 'https://x.example/', command: [sh]}",
                "a handler runs either `http` or a `command`, not both",
            ),
            ("{timeout: 1s}", "`run` needs `http` or `command`, or is the word `pull`"),
            (
                "{http: 'https://me:pw@x.example/'}",
                "a URL holds no credentials; give them as a header, by reference",
            ),
            ("{http: /index}", "this is not a URL: relative URL without a base"),
        ] {
            assert_eq!(faults_of(text, any), [want], "{text}");
        }
        assert!(matches!(read_text("pull", any), Ok(Run::Pull)));
    }
}

//! From the texts to a [`Config`], or to every fault there is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::route::ChainRoutes;
use pointsman_core::{HandlerName, Routes, Tenant, Weight};
use pointsman_engine::handlers::http::NetworkAccess;

use super::decode::{Fields, parsed, whole};
use super::fault::{Faults, Findings};
use super::handlers::{Known, Names};
use super::lookup::Sources;
use super::place::{Origin, Place, Source};
use super::redact;
use super::schema::ROOT;
use super::secret::Vault;
use super::snapshot::{Print, Snapshot};
use super::yaml::{self, Kind, Node};
use super::{Charted, Config, Handler, Planned, StoreUrl, TokenDef, Warning};
use super::{
    chains, doubts, handlers, merge, network, retention, rooms, routes, schedules, server, sources, store,
    tenants, tokens, variables,
};
use crate::auth::Role;

/// The lowest layer, which documents every setting.
pub(super) const DEFAULTS: &str = include_str!("default.yml");

/// What reading led to. The print is there also if it led to faults: whoever watches waits for a change of it.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) result: Result<Config, Faults>,
    pub(super) print: Print,
    /// Variables that secrets refer to and that are not set, and where.
    pub(super) unset: Vec<(String, Place)>,
}

pub(super) fn build(sources: &Sources, snapshot: &Snapshot) -> Built {
    let mut findings = Findings::default();
    let mut vault = Vault::new(&sources.env);
    let defaults = Source::new(Origin::Default, 0, DEFAULTS.into());
    let tree = tree(&defaults, sources, snapshot, &mut findings);
    let draft = tree.and_then(|tree| draft(tree, &mut vault, &mut findings));
    let print = Print::of(snapshot, &vault.files);
    let read = findings.finish(draft, &Place::whole(&defaults));
    let result = read.map(|(draft, warnings)| {
        let files = snapshot.files.iter().map(|(path, _)| path.clone()).collect();
        draft.finish(files, warnings, print.clone())
    });
    Built { result, print, unset: vault.unset }
}

/// All layers as one tree.
fn tree(
    defaults: &Arc<Source>,
    sources: &Sources,
    snapshot: &Snapshot,
    findings: &mut Findings,
) -> Option<Node> {
    let mut tree = yaml::parse(defaults, findings)?;
    let mut files: Option<Node> = None;
    if let Some((folder, why)) = &snapshot.problem {
        findings.fault(&Place::whole(&Source::new(Origin::File(folder.clone()), 0, String::new())), why);
    }
    for (rank, (path, content)) in snapshot.files.iter().enumerate() {
        let Some(node) = file(path, rank, content, findings) else { continue };
        match &mut files {
            None => files = Some(node),
            Some(files) => merge::join(files, node, findings),
        }
    }
    if let Some(files) = files {
        merge::lay_over(&mut tree, files);
    }
    variables::apply_env(&mut tree, &sources.env, findings);
    variables::apply_flags(&mut tree, &sources.flags, findings);
    Some(tree)
}

/// The tree of one file.
fn file(
    path: &Path,
    rank: usize,
    content: &Result<Vec<u8>, String>,
    findings: &mut Findings,
) -> Option<Node> {
    let origin = Origin::File(path.to_owned());
    let bytes = match content {
        Ok(bytes) => bytes,
        Err(why) => {
            findings.fault(&Place::whole(&Source::new(origin, rank, String::new())), why);
            return None;
        }
    };
    let (text, good) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(), false),
    };
    let source = Source::new(origin, rank, text.strip_prefix('\u{feff}').unwrap_or(text).to_owned());
    // What was cut off for its length ends in the middle of a character; its size is the fault to tell of.
    if !good && bytes.len() <= yaml::MAX_BYTES {
        let line = source.text.split('\n').count();
        let column = source.text.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        findings.fault(&Place { source, line, column }, "the text is not UTF-8 from here on");
        return None;
    }
    if bytes.len() > yaml::MAX_BYTES {
        findings.fault(&Place::whole(&source), format!("is larger than {} bytes", yaml::MAX_BYTES));
        return None;
    }
    let root = yaml::parse(&source, findings)?;
    redact::hide_lines(&source, &root);
    if matches!(root.kind, Kind::Map(_) | Kind::Null) {
        return Some(root);
    }
    findings.fault(&root.place, format!("a configuration must be a map, not {}", root.what()));
    None
}

/// Everything but what is known only once there are no faults.
struct Draft {
    store: StoreUrl,
    name: HandlerName,
    server: server::Server,
    workers: usize,
    rooms: rooms::Chosen,
    journal: Retention,
    history: Retention,
    objects: Duration,
    tokens: Vec<TokenDef>,
    network: NetworkAccess,
    tenants: BTreeMap<Tenant, Weight>,
    work: Work,
    tree: Node,
}

/// What is to be done, and when.
pub(super) struct Work {
    pub(super) handlers: Vec<Handler>,
    pub(super) routes: Routes,
    pub(super) chain_routes: ChainRoutes,
    pub(super) sources: Vec<Handler>,
    pub(super) schedules: Vec<Planned>,
    pub(super) chains: Vec<Charted>,
}

/// Reads every section, whatever is wrong with the others.
fn draft(tree: Node, vault: &mut Vault, findings: &mut Findings) -> Option<Draft> {
    let root = Fields::open(&tree, &ROOT, findings)?;
    let what = ROOT.of;
    let store = root.need("store", what, findings).and_then(|n| store::read(n, findings));
    let name = root.need("name", what, findings).and_then(|n| parsed(n, findings, str::parse::<HandlerName>));
    let server = root.need("server", what, findings).and_then(|n| server::read(n, findings));
    let workers = root.need("workers", what, findings).and_then(|n| whole(n, findings, 1..=10_000));
    let rooms = root.need("rooms", what, findings).and_then(|n| rooms::read(n, findings));
    let journal = root.need("journal", what, findings).and_then(|n| retention::journal(n, findings));
    let history = root.need("history", what, findings).and_then(|n| retention::history(n, findings));
    let objects = root.need("objects", what, findings).and_then(|n| retention::objects(n, findings));
    let tokens = root.need("auth", what, findings).and_then(|n| tokens::read(n, vault, findings));
    if let (Some(server), Some(rooms), Some(tokens)) = (&server, &rooms, &tokens) {
        guard(&root, server, rooms.http, tokens, findings);
    }
    // A server whose own address is at fault is taken to be on loopback, lest its handlers be blamed too.
    let local = server.as_ref().is_none_or(|server| server.listen.ip().is_loopback());
    let network = root.need("network", what, findings).and_then(|n| network::read(n, local, findings));
    let tenants = root.need("tenants", what, findings).map(|n| tenants::read(n, findings));
    let open = NetworkAccess { allow_loopback: true, allow: vec![] };
    let work = work(&root, network.as_ref().unwrap_or(&open), vault, findings);
    let draft = Draft {
        store: store?,
        name: name?,
        server: server?,
        workers: usize::try_from(workers?).ok()?,
        rooms: rooms?,
        journal: journal?,
        history: history?,
        objects: objects?,
        tokens: tokens?,
        network: network?,
        tenants: tenants?,
        work: work?,
        tree,
    };
    doubts::look(&draft.tree, &draft.work, vault.env, findings);
    Some(draft)
}

/// Reads the sections that say what is to be done. They come together because names are shared and referred to.
fn work(root: &Fields, network: &NetworkAccess, vault: &mut Vault, findings: &mut Findings) -> Option<Work> {
    let what = ROOT.of;
    let mut names = Names::new();
    let handlers = root
        .need("handlers", what, findings)
        .map(|n| handlers::read(n, network, &mut names, vault, findings));
    // Routes may name every handler that is there, also one that is at fault in itself.
    let all = |names: &Names| -> BTreeSet<HandlerName> {
        names.keys().filter_map(|name| HandlerName::new(name).ok()).collect()
    };
    let of_handlers = all(&names);
    let section =
        root.need("sources", what, findings).map(|n| sources::read(n, network, &mut names, vault, findings));
    let known = Known { sources: &all(&names) - &of_handlers, handlers: of_handlers };
    let section_of_chains = root.need("chains", what, findings).map(|n| chains::read(n, &known, findings));
    let chains::Section { chains, known: paths } = section_of_chains.unwrap_or_default();
    let routes =
        root.need("event_handlers", what, findings).map(|n| routes::read(n, &known, &paths, findings));
    let schedules =
        root.need("schedules", what, findings).map(|n| schedules::read(n, &mut names, &paths, findings));
    let sources::Section { sources, schedules: of_sources } = section?;
    let mut schedules = schedules?;
    schedules.extend(of_sources);
    let routes::Section { routes, chain_routes } = routes?;
    Some(Work { handlers: handlers?, routes, chain_routes, sources, schedules, chains })
}

/// Others may reach a server only if it knows whom to let in; and somebody should be able to do everything.
fn guard(root: &Fields, server: &server::Server, http: bool, tokens: &[TokenDef], findings: &mut Findings) {
    let listen = root.get("server").and_then(|server| server.get("listen"));
    if let Some(listen) = listen.filter(|_| http && tokens.is_empty() && !server.listen.ip().is_loopback()) {
        let message = format!(
            "others can reach {}, but no token is configured; add one to `auth.tokens`",
            server.listen
        );
        findings.fault(&listen.place, message);
    }
    let admin = tokens.iter().any(|token| token.role == Role::Admin);
    let list = root.get("auth").and_then(|auth| auth.get("tokens"));
    if let Some(list) = list.filter(|_| http && !tokens.is_empty() && !admin) {
        let message = "no admin among the tokens; the token of the first start is no longer accepted";
        findings.warn(&list.place, message);
    }
}

impl Draft {
    fn finish(self, files: Vec<PathBuf>, warnings: Vec<Warning>, print: Print) -> Config {
        Config {
            store: self.store,
            name: self.name.to_string(),
            listen: self.server.listen,
            max_connections: self.server.max_connections,
            limits: self.server.limits,
            drain: self.server.drain,
            workers: self.workers,
            rooms: self.rooms.engine,
            http: self.rooms.http,
            journal: self.journal,
            history: self.history,
            objects: self.objects,
            tokens: self.tokens,
            network: self.network,
            tenants: self.tenants,
            handlers: self.work.handlers,
            routes: self.work.routes,
            sources: self.work.sources,
            schedules: self.work.schedules,
            chains: self.work.chains,
            chain_routes: self.work.chain_routes,
            files,
            warnings,
            tree: self.tree,
            print,
        }
    }
}

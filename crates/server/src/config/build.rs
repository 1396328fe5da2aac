//! Builds a [`Config`] from files, environment variables and flags, or reports every fault.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::route::ChainRoutes;
use pointsman_core::{HandlerName, Routes, Tenant, Weight};
use pointsman_engine::handlers::http::NetworkAccess;

use super::decode::{CheckedMap, parse_scalar, read_integer};
use super::fault::{ConfigFaults, Findings};
use super::file_contents::{ConfigFileContents, ConfigFingerprint};
use super::handlers::{DefinedHandlersAndSources, NameLocations};
use super::inputs::ConfigInputs;
use super::location::{ConfigText, SettingLocation, SettingOrigin};
use super::redact;
use super::schema::ROOT_KEYS;
use super::secrets::SecretResolver;
use super::yaml::{self, YamlKind, YamlNode};
use super::{ChainConfig, Config, ConfigWarning, HandlerConfig, ScheduleConfig, StoreUrl, TokenDef};
use super::{
    chains, handlers, lints, merge, network, overrides, retention, routes, schedules, server, services,
    sources, store_url, tenants, tokens,
};
use crate::auth::Role;

/// The lowest layer: the default of every setting, with its documentation.
pub(super) const DEFAULT_YAML: &str = include_str!("default.yml");

/// The result of reading a configuration. The fingerprint is set even if there are faults, since the watcher waits for
/// it to change.
#[derive(Debug)]
pub(super) struct BuildResult {
    pub(super) config: Result<Config, ConfigFaults>,
    pub(super) fingerprint: ConfigFingerprint,
    /// Environment variables that secrets refer to and that are not set, with the location of each reference.
    pub(super) unset_variables: Vec<(String, SettingLocation)>,
}

pub(super) fn build_config(inputs: &ConfigInputs, contents: &ConfigFileContents) -> BuildResult {
    let mut findings = Findings::default();
    let mut resolver = SecretResolver::new(&inputs.env);
    let defaults = ConfigText::new(SettingOrigin::Default, 0, DEFAULT_YAML.into());
    let tree = merge_layers(&defaults, inputs, contents, &mut findings);
    let draft = tree.and_then(|tree| read_sections(tree, &mut resolver, &mut findings));
    let fingerprint = ConfigFingerprint::compute(contents, &resolver.secret_files);
    let read = findings.into_result(draft, &SettingLocation::whole_text(&defaults));
    let result = read.map(|(draft, warnings)| {
        let files = contents.files.iter().map(|(path, _)| path.clone()).collect();
        draft.into_config(files, warnings, fingerprint.clone())
    });
    BuildResult { config: result, fingerprint, unset_variables: resolver.unset_variables }
}

/// Merges defaults, files, variables and flags into one tree.
fn merge_layers(
    defaults: &Arc<ConfigText>,
    inputs: &ConfigInputs,
    contents: &ConfigFileContents,
    findings: &mut Findings,
) -> Option<YamlNode> {
    let mut tree = yaml::parse_yaml(defaults, findings)?;
    let mut files: Option<YamlNode> = None;
    if let Some((folder, reason)) = &contents.folder_error {
        findings.add_fault(
            &SettingLocation::whole_text(&ConfigText::new(
                SettingOrigin::File(folder.clone()),
                0,
                String::new(),
            )),
            reason,
        );
    }
    for (file_index, (path, content)) in contents.files.iter().enumerate() {
        let Some(node) = parse_config_file(path, file_index, content, findings) else { continue };
        match &mut files {
            None => files = Some(node),
            Some(files) => merge::merge_files(files, node, findings),
        }
    }
    if let Some(files) = files {
        merge::override_layer(&mut tree, files);
    }
    overrides::apply_env(&mut tree, &inputs.env, findings);
    overrides::apply_flags(&mut tree, &inputs.flags, findings);
    Some(tree)
}

/// Parses one file into a tree.
fn parse_config_file(
    path: &Path,
    file_index: usize,
    content: &Result<Vec<u8>, String>,
    findings: &mut Findings,
) -> Option<YamlNode> {
    let origin = SettingOrigin::File(path.to_owned());
    let bytes = match content {
        Ok(bytes) => bytes,
        Err(reason) => {
            findings.add_fault(
                &SettingLocation::whole_text(&ConfigText::new(origin, file_index, String::new())),
                reason,
            );
            return None;
        }
    };
    let (text, is_utf8) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(), false),
    };
    let config_text =
        ConfigText::new(origin, file_index, text.strip_prefix('\u{feff}').unwrap_or(text).to_owned());
    // A file that was cut off for its size may end in the middle of a character; its size is the fault to report.
    if !is_utf8 && bytes.len() <= yaml::MAX_YAML_BYTES {
        let line = config_text.text.split('\n').count();
        let column = config_text.text.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        findings
            .add_fault(&SettingLocation { config_text, line, column }, "the text is not UTF-8 from here on");
        return None;
    }
    if bytes.len() > yaml::MAX_YAML_BYTES {
        findings.add_fault(
            &SettingLocation::whole_text(&config_text),
            format!("is larger than {} bytes", yaml::MAX_YAML_BYTES),
        );
        return None;
    }
    let root = yaml::parse_yaml(&config_text, findings)?;
    redact::mark_hidden_lines(&config_text, &root);
    if matches!(root.kind, YamlKind::Map(_) | YamlKind::Null) {
        return Some(root);
    }
    findings
        .add_fault(&root.location, format!("a configuration must be a map, not {}", root.describe_kind()));
    None
}

/// The sections of a configuration, before the files and warnings are added.
struct ConfigDraft {
    store_url: StoreUrl,
    registration_name: HandlerName,
    server: server::ServerSettings,
    max_running_tasks: usize,
    selected_services: services::SelectedServices,
    journal_retention: Retention,
    history_retention: Retention,
    object_retention: Duration,
    tokens: Vec<TokenDef>,
    network_access: NetworkAccess,
    tenant_weights: BTreeMap<Tenant, Weight>,
    work_definitions: WorkDefinitions,
    merged_tree: YamlNode,
}

/// The sections that define handlers, routes, sources, schedules and chains.
pub(super) struct WorkDefinitions {
    pub(super) handlers: Vec<HandlerConfig>,
    pub(super) routes: Routes,
    pub(super) chain_routes: ChainRoutes,
    pub(super) sources: Vec<HandlerConfig>,
    pub(super) schedules: Vec<ScheduleConfig>,
    pub(super) chains: Vec<ChainConfig>,
}

/// Reads every section, even if others have faults.
fn read_sections(
    tree: YamlNode,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<ConfigDraft> {
    let root = CheckedMap::from_node_with_known_keys(&tree, &ROOT_KEYS, findings)?;
    let owner = ROOT_KEYS.described_thing;
    let store =
        root.get_required("store", owner, findings).and_then(|n| store_url::read_store_url(n, findings));
    let name = root
        .get_required("name", owner, findings)
        .and_then(|n| parse_scalar(n, findings, str::parse::<HandlerName>));
    let server =
        root.get_required("server", owner, findings).and_then(|n| server::read_server_settings(n, findings));
    let workers =
        root.get_required("workers", owner, findings).and_then(|n| read_integer(n, findings, 1..=10_000));
    let services =
        root.get_required("services", owner, findings).and_then(|n| services::read_services(n, findings));
    let journal = root
        .get_required("journal", owner, findings)
        .and_then(|n| retention::read_journal_retention(n, findings));
    let history = root
        .get_required("history", owner, findings)
        .and_then(|n| retention::read_history_retention(n, findings));
    let objects = root
        .get_required("objects", owner, findings)
        .and_then(|n| retention::read_object_retention(n, findings));
    let tokens =
        root.get_required("auth", owner, findings).and_then(|n| tokens::read_tokens(n, resolver, findings));
    if let (Some(server), Some(services), Some(tokens)) = (&server, &services, &tokens) {
        check_token_requirements(&root, server, services.serves_http, tokens, findings);
    }
    // If the listen address is invalid, loopback is assumed, so that handlers with loopback URLs are not reported too.
    let is_loopback = server.as_ref().is_none_or(|server| server.listen_address.ip().is_loopback());
    let network = root
        .get_required("network", owner, findings)
        .and_then(|n| network::read_network(n, is_loopback, findings));
    let tenants = root.get_required("tenants", owner, findings).map(|n| tenants::read_tenants(n, findings));
    let permissive = NetworkAccess { allows_loopback: true, allowed_destinations: vec![] };
    let work_sections =
        read_work_definitions(&root, network.as_ref().unwrap_or(&permissive), resolver, findings);
    let draft = ConfigDraft {
        store_url: store?,
        registration_name: name?,
        server: server?,
        max_running_tasks: usize::try_from(workers?).ok()?,
        selected_services: services?,
        journal_retention: journal?,
        history_retention: history?,
        object_retention: objects?,
        tokens: tokens?,
        network_access: network?,
        tenant_weights: tenants?,
        work_definitions: work_sections?,
        merged_tree: tree,
    };
    lints::add_lint_warnings(&draft.merged_tree, &draft.work_definitions, resolver.env, findings);
    Some(draft)
}

/// Reads the sections that define work. They are read together because they share names and refer to each other.
fn read_work_definitions(
    root: &CheckedMap,
    network: &NetworkAccess,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<WorkDefinitions> {
    let owner = ROOT_KEYS.described_thing;
    let mut names = NameLocations::new();
    let handlers = root
        .get_required("handlers", owner, findings)
        .map(|n| handlers::read_handlers(n, network, &mut names, resolver, findings));
    // Routes may name every handler that is defined, even one that has faults.
    let parse_names = |names: &NameLocations| -> BTreeSet<HandlerName> {
        names.keys().filter_map(|name| HandlerName::new(name).ok()).collect()
    };
    let handler_names = parse_names(&names);
    let sources_section = root
        .get_required("sources", owner, findings)
        .map(|n| sources::read_sources(n, network, &mut names, resolver, findings));
    let defined =
        DefinedHandlersAndSources { sources: &parse_names(&names) - &handler_names, handlers: handler_names };
    let chains_section =
        root.get_required("chains", owner, findings).map(|n| chains::read_chains(n, &defined, findings));
    let chains::ChainsSection { chains, node_ids_of_defined_chains: defined_chains } =
        chains_section.unwrap_or_default();
    let routes = root
        .get_required("event_handlers", owner, findings)
        .map(|n| routes::read_routes(n, &defined, &defined_chains, findings));
    let schedules = root
        .get_required("schedules", owner, findings)
        .map(|n| schedules::read_schedules(n, &mut names, &defined_chains, findings));
    let sources::SourcesSection { sources, schedules: source_schedules } = sources_section?;
    let mut schedules = schedules?;
    schedules.extend(source_schedules);
    let routes::RoutesSection { routes, chain_routes } = routes?;
    Some(WorkDefinitions { handlers: handlers?, routes, chain_routes, sources, schedules, chains })
}

/// Reports a fault if the server listens beyond loopback without a token, and a warning if no token is an admin's.
fn check_token_requirements(
    root: &CheckedMap,
    server: &server::ServerSettings,
    serves_http: bool,
    tokens: &[TokenDef],
    findings: &mut Findings,
) {
    let listen = root.get("server").and_then(|server| server.get("listen"));
    if let Some(listen) =
        listen.filter(|_| serves_http && tokens.is_empty() && !server.listen_address.ip().is_loopback())
    {
        let message = format!(
            "the server listens beyond loopback on {}, but no token is configured; add one to `auth.tokens`",
            server.listen_address
        );
        findings.add_fault(&listen.location, message);
    }
    let has_admin = tokens.iter().any(|token| token.role == Role::Admin);
    let list = root.get("auth").and_then(|auth| auth.get("tokens"));
    if let Some(list) = list.filter(|_| serves_http && !tokens.is_empty() && !has_admin) {
        let message = "no admin among the tokens; the token of the first start is no longer accepted";
        findings.add_warning(&list.location, message);
    }
}

impl ConfigDraft {
    fn into_config(
        self,
        files: Vec<PathBuf>,
        warnings: Vec<ConfigWarning>,
        fingerprint: ConfigFingerprint,
    ) -> Config {
        Config {
            store_url: self.store_url,
            registration_name: self.registration_name.to_string(),
            listen_address: self.server.listen_address,
            max_connections: self.server.max_connections,
            server_limits: self.server.limits,
            drain_timeout: self.server.drain_timeout,
            max_running_tasks: self.max_running_tasks,
            engine_services: self.selected_services.engine_services,
            serves_http: self.selected_services.serves_http,
            journal_retention: self.journal_retention,
            history_retention: self.history_retention,
            object_retention: self.object_retention,
            tokens: self.tokens,
            network_access: self.network_access,
            tenant_weights: self.tenant_weights,
            handlers: self.work_definitions.handlers,
            routes: self.work_definitions.routes,
            sources: self.work_definitions.sources,
            schedules: self.work_definitions.schedules,
            chains: self.work_definitions.chains,
            chain_routes: self.work_definitions.chain_routes,
            files,
            warnings,
            merged_tree: self.merged_tree,
            fingerprint,
        }
    }
}

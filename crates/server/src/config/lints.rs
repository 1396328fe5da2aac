//! Warnings about settings that are valid but probably not intended.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pointsman_core::HandlerName;
use pointsman_core::chain::{ChainNodeId, ChainNodeRole};
use pointsman_core::fire::FireAction;
use pointsman_core::route::HandlerBinding;

use super::build::WorkDefinitions;
use super::chains::ChainConfig;
use super::fault::Findings;
use super::handler_run::HandlerRunConfig;
use super::handlers::HandlerConfig;
use super::schedule_lints::lint_fire_action;
use super::schedules::ScheduleConfig;
use super::secrets::Environment;
use super::yaml::{YamlEntry, YamlNode};

/// Warns of handlers and chain nodes that nothing reaches, event types without a target, synchronous pull handlers, and
/// commands that cannot start.
pub(super) fn add_lint_warnings(
    tree: &YamlNode,
    work: &WorkDefinitions,
    env: &Environment,
    findings: &mut Findings,
) {
    let nodes = work.chains.iter().flat_map(|chain_config| &chain_config.chain.nodes);
    let steps = nodes.filter_map(|node| match &node.role {
        ChainNodeRole::Step(step) => Some(&step.handler),
        ChainNodeRole::End => None,
    });
    let routed = work.routes.iter().flat_map(|(_, list)| list).map(|binding| &binding.handler);
    let routed: BTreeSet<&HandlerName> = routed.chain(steps).collect();
    for handler in &work.handlers {
        let name = &handler.def.name;
        if !routed.contains(name) {
            findings.add_warning(&handler.location, format!("nothing routes to the handler {name:?}"));
        }
    }
    for handler in work.handlers.iter().chain(&work.sources) {
        if let HandlerRunConfig::Command(command) = &handler.run {
            warn_of_unrunnable_command(
                &command.spec.argv[0],
                command.spec.working_dir.as_deref(),
                handler,
                env,
                findings,
            );
        }
    }
    warn_of_suspicious_routes(
        tree.get("event_handlers").map(YamlNode::entries).unwrap_or_default(),
        work,
        findings,
    );
    for ScheduleConfig { schedule, location } in &work.schedules {
        if let Some(lint) = lint_fire_action(schedule, &work.routes, &work.chain_routes) {
            findings.add_warning(location, format!("the schedule {:?}: {lint}", schedule.name));
        }
    }
    for chain_config in &work.chains {
        warn_of_unreachable_chain_nodes(chain_config, work, findings);
    }
}

/// Warns of chain nodes that no path leads to from the first node or from a node at which a schedule adds orders.
fn warn_of_unreachable_chain_nodes(
    chain_config: &ChainConfig,
    work: &WorkDefinitions,
    findings: &mut Findings,
) {
    let ChainConfig { chain, node_locations } = chain_config;
    let starts = work.schedules.iter().filter_map(|schedule_config| match &schedule_config.schedule.action {
        FireAction::AddOrder(order) if order.chain == chain.path => order.start_node.as_ref(),
        FireAction::AddOrder(_) | FireAction::EmitEvent(_) | FireAction::RunCollection(_) => None,
    });
    let mut pending: Vec<&ChainNodeId> =
        chain.nodes.first().map(|node| &node.id).into_iter().chain(starts).collect();
    let mut reached: BTreeSet<&ChainNodeId> = BTreeSet::new();
    let nodes: BTreeMap<&ChainNodeId, &ChainNodeRole> =
        chain.nodes.iter().map(|node| (&node.id, &node.role)).collect();
    while let Some(id) = pending.pop() {
        if let (true, Some(ChainNodeRole::Step(step))) = (reached.insert(id), nodes.get(id)) {
            pending.push(&step.next);
            pending.extend(&step.on_error);
        }
    }
    for (node, location) in
        chain.nodes.iter().zip(node_locations).filter(|(node, _)| !reached.contains(&node.id))
    {
        let (path, id) = (&chain.path, &node.id);
        findings.add_warning(location, format!("no path leads to the node {id} of the chain {path}"));
    }
}

fn warn_of_suspicious_routes(entries: &[YamlEntry], work: &WorkDefinitions, findings: &mut Findings) {
    let pulled: BTreeSet<&HandlerName> =
        work.handlers.iter().filter(|handler| handler.def.pull).map(|handler| &handler.def.name).collect();
    let lists: BTreeMap<&str, &[HandlerBinding]> =
        work.routes.iter().map(|(event_type, list)| (event_type.as_str(), list)).collect();
    let to_chains: BTreeSet<&str> =
        work.chain_routes.iter().map(|(event_type, _)| event_type.as_str()).collect();
    for entry in entries {
        let list = lists.get(entry.key.as_str()).copied().unwrap_or_default();
        if list.is_empty() && !to_chains.contains(entry.key.as_str()) {
            findings.add_warning(
                &entry.key_location,
                format!("events of type {:?} are routed to no handler", entry.key),
            );
        }
        for binding in list.iter().filter(|binding| binding.sync && pulled.contains(&binding.handler)) {
            let name = &binding.handler;
            let message = format!(
                "{name:?} is synchronous and pulled: the handlers after it wait until a worker has tried it"
            );
            findings.add_warning(&entry.key_location, message);
        }
    }
}

fn warn_of_unrunnable_command(
    program: &str,
    dir: Option<&Path>,
    handler: &HandlerConfig,
    env: &Environment,
    findings: &mut Findings,
) {
    if let Some(dir) = dir.filter(|dir| !dir.is_dir()) {
        findings
            .add_warning(&handler.location, format!("the command's folder {} does not exist", dir.display()));
    }
    if program.contains('/') {
        let path = Path::new(program);
        if !path.exists() {
            findings.add_warning(&handler.location, format!("the program {program} does not exist"));
        } else if !is_executable_file(path) {
            findings.add_warning(&handler.location, format!("the program {program} is not executable"));
        }
    } else if let Some(path) = env.get("PATH")
        && !std::env::split_paths(path).any(|folder| is_executable_file(&folder.join(program)))
    {
        findings.add_warning(&handler.location, format!("the program {program:?} is not found in PATH"));
    }
}

fn is_executable_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

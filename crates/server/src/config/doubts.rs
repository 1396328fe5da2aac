//! What is allowed but probably not meant.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pointsman_core::HandlerName;
use pointsman_core::chain::{NodeId, Role};
use pointsman_core::fire::Makes;
use pointsman_core::route::Binding;

use super::chains::Charted;
use super::fault::Findings;
use super::handlers::Handler;
use super::read::Work;
use super::run::Run;
use super::schedules::Planned;
use super::secret::Env;
use super::surprises::of_what_it_makes;
use super::yaml::{Entry, Node};

/// Warns of handlers and nodes that nothing reaches, events that reach nothing or wait for strangers, and commands
/// that cannot start.
pub(super) fn look(tree: &Node, work: &Work, env: &Env, findings: &mut Findings) {
    let nodes = work.chains.iter().flat_map(|charted| &charted.chain.nodes);
    let steps = nodes.filter_map(|node| match &node.role {
        Role::Step(step) => Some(&step.handler),
        Role::End => None,
    });
    let routed = work.routes.iter().flat_map(|(_, list)| list).map(|binding| &binding.handler);
    let routed: BTreeSet<&HandlerName> = routed.chain(steps).collect();
    for handler in &work.handlers {
        let name = &handler.def.name;
        if !routed.contains(name) {
            findings.warn(&handler.place, format!("nothing routes to the handler {name:?}"));
        }
    }
    for handler in work.handlers.iter().chain(&work.sources) {
        if let Run::Command(command) = &handler.run {
            command_doubts(&command.spec.argv[0], command.spec.dir.as_deref(), handler, env, findings);
        }
    }
    route_doubts(tree.get("event_handlers").map(Node::entries).unwrap_or_default(), work, findings);
    for Planned { schedule, place } in &work.schedules {
        if let Some(surprise) = of_what_it_makes(schedule, &work.routes, &work.chain_routes) {
            findings.warn(place, format!("the schedule {:?}: {surprise}", schedule.name));
        }
    }
    for charted in &work.chains {
        chain_doubts(charted, work, findings);
    }
}

/// Nodes that orders come to only if they are added there, which no schedule does.
fn chain_doubts(charted: &Charted, work: &Work, findings: &mut Findings) {
    let Charted { chain, places } = charted;
    let starts = work.schedules.iter().filter_map(|planned| match &planned.schedule.makes {
        Makes::Order(order) if order.chain == chain.path => order.node.as_ref(),
        Makes::Order(_) | Makes::Event(_) | Makes::Run(_) => None,
    });
    let mut open: Vec<&NodeId> = chain.nodes.first().map(|node| &node.id).into_iter().chain(starts).collect();
    let mut reached: BTreeSet<&NodeId> = BTreeSet::new();
    let nodes: BTreeMap<&NodeId, &Role> = chain.nodes.iter().map(|node| (&node.id, &node.role)).collect();
    while let Some(id) = open.pop() {
        if let (true, Some(Role::Step(step))) = (reached.insert(id), nodes.get(id)) {
            open.push(&step.next);
            open.extend(&step.on_error);
        }
    }
    for (node, place) in chain.nodes.iter().zip(places).filter(|(node, _)| !reached.contains(&node.id)) {
        let (path, id) = (&chain.path, &node.id);
        findings.warn(place, format!("nothing leads to the node {id} of the chain {path}"));
    }
}

fn route_doubts(entries: &[Entry], work: &Work, findings: &mut Findings) {
    let pulled: BTreeSet<&HandlerName> =
        work.handlers.iter().filter(|handler| handler.def.pull).map(|handler| &handler.def.name).collect();
    let lists: BTreeMap<&str, &[Binding]> =
        work.routes.iter().map(|(kind, list)| (kind.as_str(), list)).collect();
    let to_chains: BTreeSet<&str> = work.chain_routes.iter().map(|(kind, _)| kind.as_str()).collect();
    for entry in entries {
        let list = lists.get(entry.key.as_str()).copied().unwrap_or_default();
        if list.is_empty() && !to_chains.contains(entry.key.as_str()) {
            findings.warn(&entry.at, format!("events of type {:?} are routed to no handler", entry.key));
        }
        for binding in list.iter().filter(|binding| binding.sync && pulled.contains(&binding.handler)) {
            let name = &binding.handler;
            let message = format!(
                "{name:?} is synchronous and pulled: the handlers after it wait until a worker has tried it"
            );
            findings.warn(&entry.at, message);
        }
    }
}

fn command_doubts(program: &str, dir: Option<&Path>, handler: &Handler, env: &Env, findings: &mut Findings) {
    if let Some(dir) = dir.filter(|dir| !dir.is_dir()) {
        findings.warn(&handler.place, format!("the command's folder {} is not there", dir.display()));
    }
    if program.contains('/') {
        let path = Path::new(program);
        if !path.exists() {
            findings.warn(&handler.place, format!("the program {program} is not there"));
        } else if !is_program(path) {
            findings.warn(&handler.place, format!("the program {program} is not executable"));
        }
    } else if let Some(path) = env.get("PATH")
        && !std::env::split_paths(path).any(|folder| is_program(&folder.join(program)))
    {
        findings.warn(&handler.place, format!("the program {program:?} is not found in PATH"));
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

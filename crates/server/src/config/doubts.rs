//! What is allowed but probably not meant.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pointsman_core::HandlerName;
use pointsman_core::fire::Makes;
use pointsman_core::route::Binding;

use super::fault::Findings;
use super::handlers::Handler;
use super::read::Work;
use super::run::Run;
use super::schedules::Planned;
use super::secret::Env;
use super::yaml::{Entry, Node};

/// Warns of handlers that nothing reaches, events that reach nothing or wait for strangers, and commands that
/// cannot start.
pub(super) fn look(tree: &Node, work: &Work, env: &Env, findings: &mut Findings) {
    let routed: BTreeSet<&HandlerName> =
        work.routes.iter().flat_map(|(_, list)| list).map(|binding| &binding.handler).collect();
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
        if let Makes::Event(event) = &schedule.makes
            && work.routes.resolve(&event.kind).is_empty()
        {
            let (name, kind) = (&schedule.name, &event.kind);
            findings
                .warn(place, format!("the schedule {name:?} emits {kind}, which is routed to no handler"));
        }
    }
}

fn route_doubts(entries: &[Entry], work: &Work, findings: &mut Findings) {
    let pulled: BTreeSet<&HandlerName> =
        work.handlers.iter().filter(|handler| handler.def.pull).map(|handler| &handler.def.name).collect();
    let lists: BTreeMap<&str, &[Binding]> =
        work.routes.iter().map(|(kind, list)| (kind.as_str(), list)).collect();
    for entry in entries {
        let list = lists.get(entry.key.as_str()).copied().unwrap_or_default();
        if list.is_empty() {
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

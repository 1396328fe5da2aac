//! What is allowed but probably not meant.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pointsman_core::Routes;
use pointsman_engine::Schedule;

use super::fault::Findings;
use super::handlers::Handler;
use super::run::Run;
use super::secret::Env;
use super::yaml::{Kind, Node};

/// Warns of handlers that nothing reaches, events that reach nothing, and commands that cannot start.
pub(super) fn look(
    tree: &Node,
    handlers: &[Handler],
    routes: &Routes,
    schedules: &[Schedule],
    env: &Env,
    findings: &mut Findings,
) {
    for handler in handlers {
        let name = handler.def.name.as_str();
        let routed =
            routes.iter().any(|(_, list)| list.iter().any(|binding| binding.handler.as_str() == name));
        if !routed {
            findings.warn(&handler.place, format!("nothing routes to the handler {name:?}"));
        }
        if let Run::Command(command) = &handler.run {
            command_doubts(&command.spec.argv[0], command.spec.dir.as_deref(), handler, env, findings);
        }
    }
    for entry in tree.get("event_handlers").map(Node::entries).unwrap_or_default() {
        let empty = matches!(&entry.value.kind, Kind::Null)
            || matches!(&entry.value.kind, Kind::List(l) if l.is_empty());
        if empty {
            findings.warn(&entry.at, format!("events of type {:?} are routed to no handler", entry.key));
        }
    }
    for schedule in schedules {
        let kind = &schedule.emit.kind;
        let entry =
            tree.get("schedules").into_iter().flat_map(Node::entries).find(|e| e.key == schedule.name);
        if let Some(entry) = entry
            && routes.resolve(kind).is_empty()
        {
            let message =
                format!("the schedule {:?} emits {kind}, which is routed to no handler", schedule.name);
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

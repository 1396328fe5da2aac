//! The environment of a command: a few inherited variables, those of the configuration, and those that describe the
//! attempt. No other variables of this process are passed on, because they may contain secrets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pointsman_core::store::ClaimedTask;
use pointsman_core::task::TaskSubject;

use super::CommandSpec;

/// The variable with the path of the effects file.
const EFFECTS_FILE_VARIABLE: &str = "POINTSMAN_EFFECTS";
/// Variables of this process that are passed on to every command.
const INHERITED_VARIABLES: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Builds the whole environment of one attempt.
pub(super) fn build_environment(
    spec: &CommandSpec,
    task: &ClaimedTask,
    effects_file: &Path,
) -> BTreeMap<String, OsString> {
    let mut variables = BTreeMap::new();
    for name in INHERITED_VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            variables.insert(name.to_owned(), value);
        }
    }
    if let Some(home) = spec.run_as.as_ref().and_then(|run_as| run_as.home.as_ref()) {
        variables.insert("HOME".into(), home.into());
    }
    variables.extend(spec.env.iter().map(|(name, value)| (name.clone(), value.into())));
    // The attempt's variables come last, so that the configuration cannot replace them. An absent value has no
    // variable, because an empty variable could be mistaken for an empty key.
    for (name, value) in list_attempt_variables(task) {
        variables.insert(format!("POINTSMAN_{name}"), value.into());
    }
    variables.insert(EFFECTS_FILE_VARIABLE.into(), effects_file.into());
    variables
}

/// The `NAME=value` in the environment of one attempt by which its processes are found: no other attempt has it.
pub(super) fn attempt_marker_variable(effects_file: &Path) -> Vec<u8> {
    [EFFECTS_FILE_VARIABLE.as_bytes(), b"=", effects_file.as_os_str().as_bytes()].concat()
}

fn list_attempt_variables(task: &ClaimedTask) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("TENANT", task.subject.tenant().to_string()),
        ("TASK_ID", task.id.to_string()),
        ("ATTEMPT", task.attempt.to_string()),
        ("FENCE", task.fence.to_string()),
        ("SOURCE", task.handler.to_string()),
        ("COLLECTION", task.subject.name().to_owned()),
    ];
    variables.extend(task.subject.key().map(|key| ("KEY", key.to_string())));
    match &task.subject {
        TaskSubject::Event(event) => {
            variables.push(("EVENT_ID", event.id.to_string()));
            variables.push(("TYPE", event.event_type.to_string()));
            variables.extend(event.prev.map(|prev| ("PREV", prev.to_string())));
        }
        TaskSubject::CollectionRun(_) => {}
        TaskSubject::Step(step) => {
            variables.push(("ORDER", step.order_key.to_string()));
            variables.push(("NODE", step.node.to_string()));
        }
    }
    variables.extend(task.prev_sent_event_id.map(|prev| ("PREV_SENT", prev.to_string())));
    variables.extend(task.out_of_order.then(|| ("LATE", "true".to_owned())));
    variables
}

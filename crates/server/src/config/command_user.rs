//! `user` and `group` of a command's `run`.

use std::fmt;

use pointsman_engine::handlers::command::{BadRunAsUser, RunAsUser};

use super::decode::{CheckedMap, read_text};
use super::fault::Findings;
use super::yaml::YamlNode;

/// The user and group that a command runs as, with their names as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandUser {
    pub(super) run_as: RunAsUser,
    user_name: Option<String>,
    group_name: Option<String>,
}

impl CommandUser {
    /// Whether a user is named, and not only a group.
    pub(super) fn has_user(&self) -> bool {
        self.user_name.is_some()
    }
}

impl fmt::Display for CommandUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.user_name, &self.group_name) {
            (Some(user), Some(group)) => write!(f, "user {user}, group {group}"),
            (Some(user), None) => write!(f, "user {user}"),
            (None, Some(group)) => write!(f, "group {group}"),
            (None, None) => Ok(()),
        }
    }
}

/// Reads `user` and `group`. Returns `Some(None)` if neither is set, and `None` if there is a fault.
pub(super) fn read_command_user(fields: &CheckedMap, findings: &mut Findings) -> Option<Option<CommandUser>> {
    let (user_node, group_node) = (fields.get("user"), fields.get("group"));
    let Some(first_node) = user_node.or(group_node) else { return Some(None) };
    let mut read_name = |node: Option<&YamlNode>| match node {
        Some(node) => read_text(node, findings).map(|name| Some(name.to_owned())),
        None => Some(None),
    };
    let (user, group) = (read_name(user_node)?, read_name(group_node)?);
    let error = match RunAsUser::find(user.as_deref(), group.as_deref()) {
        Ok(run_as) => return Some(Some(CommandUser { run_as, user_name: user, group_name: group })),
        Err(error) => error,
    };
    let wrong_node = match &error {
        BadRunAsUser::NotPermitted => None,
        BadRunAsUser::UnknownUser(_) => user_node,
        BadRunAsUser::UnknownGroup(_) => group_node,
        BadRunAsUser::LookupFailed(name, _) => {
            if user.as_ref() == Some(name) {
                user_node
            } else {
                group_node
            }
        }
    };
    findings.add_fault(&wrong_node.unwrap_or(first_node).location, error.to_string());
    // The group is looked up after the user, so that it has not been checked yet.
    if let (BadRunAsUser::UnknownUser(_), Some(node)) = (&error, group_node)
        && let Err(error @ BadRunAsUser::UnknownGroup(_)) = RunAsUser::find(None, group.as_deref())
    {
        findings.add_fault(&node.location, error.to_string());
    }
    None
}

//! Warns of command handlers that would run as root.

use pointsman_server::config::{Config, HandlerRunConfig};

pub(crate) const RUN_AS_ROOT_ADVICE: &str =
    "Run Pointsman as an unprivileged user, or set `user` in the `run` of these handlers and sources.";

/// Names the handlers and sources whose commands have no `user`, if this process runs as root.
pub(crate) fn describe_commands_run_as_root(config: &Config, is_root: bool) -> Option<String> {
    if !is_root {
        return None;
    }
    let handlers = config.handlers.iter().chain(&config.sources);
    let runs_as_root = |run: &HandlerRunConfig| matches!(run, HandlerRunConfig::Command(command) if command.spec.run_as.is_none());
    let names: Vec<&str> = handlers
        .filter(|handler| runs_as_root(&handler.run))
        .map(|handler| handler.def.name.as_str())
        .collect();
    (!names.is_empty()).then(|| format!("the commands of {} run as root", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use pointsman_server::config::{ConfigInputs, Environment};

    use super::*;

    #[test]
    fn commands_without_a_user_are_named_when_running_as_root() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pointsman.yml");
        let yaml = "handlers:\n  index: {run: {command: [sh]}}\n  remote: {run: pull}\n\
                    sources:\n  shop: {run: {command: [sh]}, collections: [orders]}\n";
        std::fs::write(&file, yaml).unwrap();
        let inputs = ConfigInputs {
            files: vec![file],
            config_dir: None,
            env: Environment::from_process(),
            flags: vec![],
            working_dir: folder.path().into(),
        };
        let config = inputs.load_config().unwrap();
        let described = describe_commands_run_as_root(&config, true);
        assert_eq!(described.as_deref(), Some("the commands of index, shop run as root"));
        assert_eq!(describe_commands_run_as_root(&config, false), None);
    }
}

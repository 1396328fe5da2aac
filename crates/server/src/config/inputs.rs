//! Where a configuration is looked for.

use std::path::{Path, PathBuf};

use super::Config;
use super::build::{self, BuildResult};
use super::fault::{ConfigFaults, ConfigWarning};
use super::file_snapshot::ConfigFileSnapshot;
use super::secrets::{Environment, variable_not_set_message};

/// The file that is read when none is named.
const DEFAULT_FILE_NAME: &str = "pointsman.yml";

/// Where the settings come from.
#[derive(Clone, Debug, Default)]
pub struct ConfigInputs {
    /// Files, in the order in which they were given.
    pub files: Vec<PathBuf>,
    /// A folder whose `*.yml` and `*.yaml` are read in the order of their names.
    pub dir: Option<PathBuf>,
    /// The whole environment: settings (`POINTSMAN_…`) are taken from it, and secrets that are referred to.
    pub env: Environment,
    /// Settings from the command line.
    pub flags: Vec<ConfigFlag>,
    /// The folder in which `pointsman.yml` is looked for if neither files nor a folder are given. Empty: the
    /// working folder of the process.
    pub working_dir: PathBuf,
}

/// A setting from the command line.
#[derive(Clone, Debug)]
pub struct ConfigFlag {
    /// As the user wrote it: `--listen`.
    pub name: String,
    /// The setting's path: `server.listen`.
    pub setting: String,
    pub value: String,
}

impl ConfigInputs {
    /// Reads everything, and answers with a configuration or with every fault there is.
    pub fn load(&self) -> Result<Config, ConfigFaults> {
        build::build_config(self, &ConfigFileSnapshot::take(self)).result
    }

    /// As [`load`](Self::load), for those who only look: a secret whose variable is not set is told of beside the
    /// configuration, which is not fit to be run then.
    pub fn load_without_secrets(&self) -> Result<(Config, Vec<ConfigWarning>), ConfigFaults> {
        let snapshot = ConfigFileSnapshot::take(self);
        let BuildResult { result, mut unset_variables, .. } = build::build_config(self, &snapshot);
        if result.is_ok() || unset_variables.is_empty() {
            return result.map(|config| (config, vec![]));
        }
        unset_variables.sort_by(|(_, a), (_, b)| a.compare(b));
        let env =
            self.env.clone().with_placeholder_secrets(unset_variables.iter().map(|(name, _)| name.as_str()));
        let retried = build::build_config(&Self { env, ..self.clone() }, &snapshot);
        let warnings = unset_variables
            .iter()
            .map(|(name, location)| ConfigWarning::new(location, variable_not_set_message(name)));
        retried.result.map(|config| (config, warnings.collect()))
    }

    /// The files to be read, and why others cannot be found.
    pub(super) fn find_files(&self) -> (Vec<PathBuf>, Option<(PathBuf, String)>) {
        let mut paths: Vec<PathBuf> = Vec::new();
        let mut add = |path: PathBuf| {
            if !paths.contains(&path) {
                paths.push(path);
            }
        };
        self.files.iter().cloned().for_each(&mut add);
        let mut problem = None;
        match &self.dir {
            Some(dir) => match list_yaml_files(dir) {
                Ok(found) => found.into_iter().for_each(add),
                Err(error) => problem = Some((dir.clone(), format!("this folder cannot be read: {error}"))),
            },
            None if self.files.is_empty() => {
                let default_file = self.working_dir.join(DEFAULT_FILE_NAME);
                if default_file.exists() {
                    add(default_file);
                }
            }
            None => {}
        }
        (paths, problem)
    }
}

/// Which files were read, in words.
pub(super) fn describe_files(files: &[PathBuf]) -> String {
    if files.is_empty() {
        return "no configuration file; only defaults, variables and flags".into();
    }
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    format!("read {}", names.join(", "))
}

/// The YAML files of a folder by name. Hidden ones are left out: editors and container platforms keep their
/// own there.
fn list_yaml_files(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let yaml = path.extension().is_some_and(|extension| extension == "yml" || extension == "yaml");
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if yaml && !hidden {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

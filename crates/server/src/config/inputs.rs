//! Finds and loads a configuration: files, a folder, environment variables and flags.

use std::path::{Path, PathBuf};

use super::Config;
use super::build::{self, BuildResult};
use super::fault::{ConfigFaults, ConfigWarning};
use super::file_contents::ConfigFileContents;
use super::secrets::{Environment, variable_not_set_message};

/// The file that is read if none is named.
const DEFAULT_FILE_NAME: &str = "pointsman.yml";

/// The inputs of a configuration.
#[derive(Clone, Debug, Default)]
pub struct ConfigInputs {
    /// Files, in the order of the command line.
    pub files: Vec<PathBuf>,
    /// A folder whose `*.yml` and `*.yaml` are read in the order of their names.
    pub config_dir: Option<PathBuf>,
    /// The environment: settings (`POINTSMAN_…`), and secrets that the configuration refers to.
    pub env: Environment,
    /// Settings from the command line.
    pub flags: Vec<ConfigFlag>,
    /// The folder with `pointsman.yml`, which is read if neither files nor a folder are given. Empty: the working folder
    /// of the process.
    pub working_dir: PathBuf,
}

/// A setting from the command line.
#[derive(Clone, Debug)]
pub struct ConfigFlag {
    /// The flag, such as `--listen`.
    pub name: String,
    /// The path of the setting, such as `server.listen`.
    pub setting_path: String,
    pub value: String,
}

impl ConfigInputs {
    /// Reads all inputs. Returns a configuration or all its faults.
    pub fn load_config(&self) -> Result<Config, ConfigFaults> {
        build::build_config(self, &ConfigFileContents::read(self)).config
    }

    /// Like [`load_config`](Self::load_config), for commands that only display a configuration: a secret whose variable
    /// is not set is a warning and gets a placeholder. The result must not be run.
    pub fn load_with_placeholder_secrets(&self) -> Result<(Config, Vec<ConfigWarning>), ConfigFaults> {
        let contents = ConfigFileContents::read(self);
        let BuildResult { config: result, mut unset_variables, .. } = build::build_config(self, &contents);
        if result.is_ok() || unset_variables.is_empty() {
            return result.map(|config| (config, vec![]));
        }
        unset_variables.sort_by(|(_, a), (_, b)| a.compare_in_reading_order(b));
        let env =
            self.env.clone().with_placeholder_secrets(unset_variables.iter().map(|(name, _)| name.as_str()));
        let retried = build::build_config(&Self { env, ..self.clone() }, &contents);
        let warnings = unset_variables
            .iter()
            .map(|(name, location)| ConfigWarning::new(location, variable_not_set_message(name)));
        retried.config.map(|config| (config, warnings.collect()))
    }

    /// The files to read, and the folder that could not be listed with the reason.
    pub(super) fn find_config_files(&self) -> (Vec<PathBuf>, Option<(PathBuf, String)>) {
        let mut paths: Vec<PathBuf> = Vec::new();
        let mut add = |path: PathBuf| {
            if !paths.contains(&path) {
                paths.push(path);
            }
        };
        self.files.iter().cloned().for_each(&mut add);
        let mut folder_error = None;
        match &self.config_dir {
            Some(dir) => match list_yaml_files(dir) {
                Ok(found) => found.into_iter().for_each(add),
                Err(error) => {
                    folder_error = Some((dir.clone(), format!("this folder cannot be read: {error}")))
                }
            },
            None if self.files.is_empty() => {
                let default_file = self.working_dir.join(DEFAULT_FILE_NAME);
                if default_file.exists() {
                    add(default_file);
                }
            }
            None => {}
        }
        (paths, folder_error)
    }
}

/// A sentence without a full stop that names the files that were read.
pub(super) fn describe_config_files(files: &[PathBuf]) -> String {
    if files.is_empty() {
        return "the configuration has no file; only defaults, environment variables and flags apply".into();
    }
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    format!("the configuration was read from {}", names.join(", "))
}

/// The YAML files of a folder, sorted by name. Hidden files are left out: editors and container platforms use them for
/// their own purposes.
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

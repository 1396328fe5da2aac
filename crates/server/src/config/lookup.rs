//! Where a configuration is looked for.

use std::path::{Path, PathBuf};

use super::Config;
use super::fault::{Faults, Warning};
use super::read::{self, Built};
use super::secret::{Env, not_set};
use super::snapshot::Snapshot;

/// The file that is read when none is named.
const USUAL: &str = "pointsman.yml";

/// Where the settings come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Files, in the order in which they were given.
    pub files: Vec<PathBuf>,
    /// A folder whose `*.yml` and `*.yaml` are read in the order of their names.
    pub dir: Option<PathBuf>,
    /// The whole environment: settings (`POINTSMAN_…`) are taken from it, and secrets that are referred to.
    pub env: Env,
    /// Settings from the command line.
    pub flags: Vec<Flag>,
    /// The folder in which `pointsman.yml` is looked for if neither files nor a folder are given. Empty: the
    /// working folder of the process.
    pub working: PathBuf,
}

/// A setting from the command line.
#[derive(Clone, Debug)]
pub struct Flag {
    /// As the user wrote it: `--listen`.
    pub name: String,
    /// The setting's path: `server.listen`.
    pub setting: String,
    pub value: String,
}

impl Sources {
    /// Reads everything, and answers with a configuration or with every fault there is.
    pub fn load(&self) -> Result<Config, Faults> {
        read::build(self, &Snapshot::take(self)).result
    }

    /// As [`load`](Self::load), for those who only look: a secret whose variable is not set is told of beside the
    /// configuration, which is not fit to be run then.
    pub fn view(&self) -> Result<(Config, Vec<Warning>), Faults> {
        let snapshot = Snapshot::take(self);
        let Built { result, mut unset, .. } = read::build(self, &snapshot);
        if result.is_ok() || unset.is_empty() {
            return result.map(|config| (config, vec![]));
        }
        unset.sort_by(|(_, a), (_, b)| a.order(b));
        let env = self.env.clone().with_stand_ins(unset.iter().map(|(name, _)| name.as_str()));
        let again = read::build(&Self { env, ..self.clone() }, &snapshot);
        let warnings = unset.iter().map(|(name, place)| Warning::new(place, not_set(name)));
        again.result.map(|config| (config, warnings.collect()))
    }

    /// The files to be read, and why others cannot be found.
    pub(super) fn paths(&self) -> (Vec<PathBuf>, Option<(PathBuf, String)>) {
        let mut paths: Vec<PathBuf> = Vec::new();
        let mut add = |path: PathBuf| {
            if !paths.contains(&path) {
                paths.push(path);
            }
        };
        self.files.iter().cloned().for_each(&mut add);
        let mut problem = None;
        match &self.dir {
            Some(dir) => match in_folder(dir) {
                Ok(found) => found.into_iter().for_each(add),
                Err(error) => problem = Some((dir.clone(), format!("this folder cannot be read: {error}"))),
            },
            None if self.files.is_empty() => {
                let usual = self.working.join(USUAL);
                if usual.exists() {
                    add(usual);
                }
            }
            None => {}
        }
        (paths, problem)
    }
}

/// Which files were read, in words.
pub(super) fn read_from(files: &[PathBuf]) -> String {
    if files.is_empty() {
        return "no configuration file; only defaults, variables and flags".into();
    }
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    format!("read {}", names.join(", "))
}

/// The YAML files of a folder by name. Hidden ones are left out: editors and container platforms keep their
/// own there.
fn in_folder(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
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

//! The locations of settings, for faults and for `config show`.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The origin of a setting, in the order of precedence, lowest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SettingOrigin {
    Default,
    File(PathBuf),
    /// An environment variable.
    Env(String),
    /// A flag of the command line.
    Flag(String),
}

/// One text that settings are read from: a file, a variable or a flag.
pub(super) struct ConfigText {
    pub(super) origin: SettingOrigin,
    /// The index of the text among those of the same kind of origin.
    pub(super) index_among_same_origin_kind: usize,
    pub(super) text: String,
    /// The lines that contain a secret and must not be shown. Set once the text has been parsed.
    secret_lines: OnceLock<BTreeSet<usize>>,
    /// The lines that must not be shown over the API. Set once the text has been parsed.
    lines_hidden_from_api: OnceLock<BTreeSet<usize>>,
    /// The offset of each line, computed on first use.
    line_starts: OnceLock<Vec<usize>>,
}

impl ConfigText {
    pub(super) fn new(origin: SettingOrigin, index: usize, text: String) -> Arc<Self> {
        Arc::new(Self {
            origin,
            index_among_same_origin_kind: index,
            text,
            secret_lines: OnceLock::new(),
            lines_hidden_from_api: OnceLock::new(),
            line_starts: OnceLock::new(),
        })
    }

    /// Sets which lines must not be shown: at all, and over the API.
    pub(super) fn set_hidden_lines(&self, from_all: BTreeSet<usize>, from_api: BTreeSet<usize>) {
        // A second call can only be for the same text, with the same result.
        let _ = self.secret_lines.set(from_all);
        let _ = self.lines_hidden_from_api.set(from_api);
    }

    /// A line of the text, unless it must not be shown over the API. None if the text could not be parsed.
    pub(super) fn line_unless_hidden_from_api(&self, number: usize) -> Option<&str> {
        let hidden = self.lines_hidden_from_api.get()?;
        if hidden.contains(&number) { None } else { self.line_unless_secret(number) }
    }

    /// A line of the text, unless it contains a secret.
    pub(super) fn line_unless_secret(&self, number: usize) -> Option<&str> {
        match self.origin {
            SettingOrigin::Default | SettingOrigin::File(_) => {}
            SettingOrigin::Env(_) | SettingOrigin::Flag(_) => return None,
        }
        let is_visible = match self.secret_lines.get() {
            Some(hidden) => !hidden.contains(&number),
            None => !super::secrets::line_may_contain_secret(&self.text, number),
        };
        let starts = self.line_starts.get_or_init(|| {
            std::iter::once(0).chain(self.text.match_indices('\n').map(|(at, _)| at + 1)).collect()
        });
        let start = *starts.get(number.checked_sub(1)?).filter(|_| is_visible)?;
        self.text[start..].lines().next()
    }

    /// The folder that relative paths in this text start from: the folder of the file, or the working folder.
    pub(super) fn base_folder(&self) -> &Path {
        match &self.origin {
            SettingOrigin::File(path) => path.parent().unwrap_or(Path::new("")),
            SettingOrigin::Default | SettingOrigin::Env(_) | SettingOrigin::Flag(_) => Path::new(""),
        }
    }
}

/// Leaves out the text, which may contain secrets.
impl fmt::Debug for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.fmt(f)
    }
}

/// A position in a text: line and column, counted from 1. Line 0 means the text as a whole.
#[derive(Clone, Debug)]
pub(super) struct SettingLocation {
    pub(super) config_text: Arc<ConfigText>,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl SettingLocation {
    pub(super) fn whole_text(config_text: &Arc<ConfigText>) -> Self {
        Self { config_text: config_text.clone(), line: 0, column: 0 }
    }

    /// The location of the character with this number, counted from 1, in a scalar that begins here. None if the scalar
    /// is not written out on one line of a file.
    pub(super) fn locate_character(&self, scalar: &str, number: usize) -> Option<Self> {
        match self.config_text.origin {
            SettingOrigin::Default | SettingOrigin::File(_) => {}
            SettingOrigin::Env(_) | SettingOrigin::Flag(_) => return None,
        }
        let line = self.config_text.text.lines().nth(self.line.checked_sub(1)?)?;
        let rest: String = line.chars().skip(self.column.checked_sub(1)?).collect();
        let unquoted = rest.strip_prefix(['"', '\'']);
        let column = self.column + usize::from(unquoted.is_some()) + number.checked_sub(1)?;
        unquoted.unwrap_or(&rest).starts_with(scalar).then(|| Self { column, ..self.clone() })
    }

    /// The location without its column, which is enough beside the value itself.
    pub(super) fn format_without_column(&self) -> String {
        match &self.config_text.origin {
            SettingOrigin::Default => "default".into(),
            SettingOrigin::File(path) => format!("{}:{}", path.display(), self.line),
            SettingOrigin::Env(name) | SettingOrigin::Flag(name) => name.clone(),
        }
    }

    fn sort_key(&self) -> (&SettingOrigin, usize, usize, usize) {
        (&self.config_text.origin, self.config_text.index_among_same_origin_kind, self.line, self.column)
    }

    /// Compares in reading order: file by file, from top to bottom.
    pub(super) fn compare_in_reading_order(&self, other: &Self) -> Ordering {
        let ((a, ra, la, ca), (b, rb, lb, cb)) = (self.sort_key(), other.sort_key());
        origin_precedence(a)
            .cmp(&origin_precedence(b))
            .then(ra.cmp(&rb))
            .then_with(|| a.cmp(b))
            .then((la, ca).cmp(&(lb, cb)))
    }
}

/// The precedence of a kind of origin. Settings of an origin with a larger number override those with a smaller number.
/// All files have the same precedence; they are compared by their index, not by their names.
fn origin_precedence(origin: &SettingOrigin) -> u8 {
    match origin {
        SettingOrigin::Default => 0,
        SettingOrigin::File(_) => 1,
        SettingOrigin::Env(_) => 2,
        SettingOrigin::Flag(_) => 3,
    }
}

impl fmt::Display for SettingLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.config_text.origin {
            SettingOrigin::Default => write!(f, "default.yml")?,
            SettingOrigin::File(path) => write!(f, "{}", path.display())?,
            SettingOrigin::Env(name) | SettingOrigin::Flag(name) => return f.write_str(name),
        }
        match self.line {
            0 => Ok(()),
            line => write!(f, ":{line}:{}", self.column),
        }
    }
}

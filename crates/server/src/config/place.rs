//! Where a setting stands, so that every fault and every shown value can say it.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What settings are read from. The order is the order of precedence, the weakest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    Default,
    File(PathBuf),
    /// An environment variable.
    Env(String),
    /// A flag of the command line.
    Flag(String),
}

/// One text that settings are read from.
pub(super) struct Source {
    pub(super) origin: Origin,
    /// Its turn among those of its kind.
    pub(super) rank: usize,
    pub(super) text: String,
    /// The lines that hold a secret value and must not be shown. Known once the text has been understood.
    hidden: OnceLock<BTreeSet<usize>>,
    /// The lines that must not be shown over the API, likewise.
    hidden_from_api: OnceLock<BTreeSet<usize>>,
    /// Where each line begins, once somebody asks.
    starts: OnceLock<Vec<usize>>,
}

impl Source {
    pub(super) fn new(origin: Origin, rank: usize, text: String) -> Arc<Self> {
        Arc::new(Self {
            origin,
            rank,
            text,
            hidden: OnceLock::new(),
            hidden_from_api: OnceLock::new(),
            starts: OnceLock::new(),
        })
    }

    /// Sets which lines must not be shown: at all, and over the API.
    pub(super) fn hide(&self, from_all: BTreeSet<usize>, from_api: BTreeSet<usize>) {
        // A second call could only come from reading the same text again, with the same result.
        let _ = self.hidden.set(from_all);
        let _ = self.hidden_from_api.set(from_api);
    }

    /// A line of the text, unless it must not be shown over the API. None of a text that was not understood.
    pub(super) fn line_for_api(&self, number: usize) -> Option<&str> {
        let hidden = self.hidden_from_api.get()?;
        if hidden.contains(&number) { None } else { self.line(number) }
    }

    /// A line of the text, unless it holds a secret.
    pub(super) fn line(&self, number: usize) -> Option<&str> {
        match self.origin {
            Origin::Default | Origin::File(_) => {}
            Origin::Env(_) | Origin::Flag(_) => return None,
        }
        let shown = match self.hidden.get() {
            Some(hidden) => !hidden.contains(&number),
            None => !super::secret::looks_secret(&self.text, number),
        };
        let starts = self.starts.get_or_init(|| {
            std::iter::once(0).chain(self.text.match_indices('\n').map(|(at, _)| at + 1)).collect()
        });
        let start = *starts.get(number.checked_sub(1)?).filter(|_| shown)?;
        self.text[start..].lines().next()
    }

    /// The folder that relative paths in this source start from: the file's own, or the working folder.
    pub(super) fn folder(&self) -> &Path {
        match &self.origin {
            Origin::File(path) => path.parent().unwrap_or(Path::new("")),
            Origin::Default | Origin::Env(_) | Origin::Flag(_) => Path::new(""),
        }
    }
}

/// The text may hold secrets.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.fmt(f)
    }
}

/// A spot in a source: line and column count from 1; line 0 means the source as a whole.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) source: Arc<Source>,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    pub(super) fn whole(source: &Arc<Source>) -> Self {
        Self { source: source.clone(), line: 0, column: 0 }
    }

    /// Without the column: enough to find a value that is shown beside it.
    pub(super) fn short(&self) -> String {
        match &self.source.origin {
            Origin::Default => "default".into(),
            Origin::File(path) => format!("{}:{}", path.display(), self.line),
            Origin::Env(name) | Origin::Flag(name) => name.clone(),
        }
    }

    fn key(&self) -> (&Origin, usize, usize, usize) {
        (&self.source.origin, self.source.rank, self.line, self.column)
    }

    /// In the order in which a person reads: file by file, from the top to the bottom.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let ((a, ra, la, ca), (b, rb, lb, cb)) = (self.key(), other.key());
        kind(a).cmp(&kind(b)).then(ra.cmp(&rb)).then_with(|| a.cmp(b)).then((la, ca).cmp(&(lb, cb)))
    }
}

/// Files are ranked as they were given, not by their names.
fn kind(origin: &Origin) -> u8 {
    match origin {
        Origin::Default => 0,
        Origin::File(_) => 1,
        Origin::Env(_) => 2,
        Origin::Flag(_) => 3,
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source.origin {
            Origin::Default => write!(f, "default.yml")?,
            Origin::File(path) => write!(f, "{}", path.display())?,
            Origin::Env(name) | Origin::Flag(name) => return f.write_str(name),
        }
        match self.line {
            0 => Ok(()),
            line => write!(f, ":{line}:{}", self.column),
        }
    }
}

//! `store`: where events and tasks are kept.

use std::fmt;
use std::path::PathBuf;

use super::decode::parsed;
use super::fault::Findings;
use super::yaml::Node;

/// Where events and tasks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file, relative to the working folder of the process.
    Sqlite { path: PathBuf },
    /// In memory: gone with the process.
    SqliteMemory,
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path } => write!(f, "sqlite:{}", path.display()),
            Self::SqliteMemory => f.write_str("sqlite::memory:"),
        }
    }
}

impl std::str::FromStr for StoreUrl {
    type Err = String;

    /// Messages name the scheme at most: the rest of a URL may hold a password.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write `sqlite:PATH` or `sqlite::memory:`";
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(format!("a store is given as a URL; {FORM}"));
        };
        match scheme {
            "sqlite" if rest == ":memory:" => Ok(Self::SqliteMemory),
            "sqlite" if rest.is_empty() || rest.contains('\0') => Err(format!("the path is missing; {FORM}")),
            "sqlite" if rest.starts_with("//") && !rest.starts_with("///") => {
                Err(format!("`sqlite:` is followed by a path, not by `//`; {FORM}"))
            }
            "sqlite" => Ok(Self::Sqlite { path: rest.into() }),
            "postgres" | "postgresql" => Err(format!("a store on PostgreSQL is not supported yet; {FORM}")),
            "redis" | "rediss" => Err(format!("a store on Redis is not supported yet; {FORM}")),
            other => Err(format!("{other:?} is not a kind of store; {FORM}")),
        }
    }
}

pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<StoreUrl> {
    parsed(node, findings, str::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_read_back_as_they_show() {
        for text in ["sqlite:pointsman.db", "sqlite:/var/lib/p.db", "sqlite::memory:", "sqlite:a b.db"] {
            assert_eq!(text.parse::<StoreUrl>().map(|url| url.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn other_stores_are_refused_without_repeating_a_password() {
        for text in
            ["postgres://me:hunter2@host/db", "redis://:hunter2@host", "mysql://me:hunter2@host", "hunter2"]
        {
            let message = text.parse::<StoreUrl>().unwrap_err();
            assert!(!message.contains("hunter2"), "{message}");
        }
        let message = "postgres://host/db".parse::<StoreUrl>().unwrap_err();
        assert_eq!(
            message,
            "a store on PostgreSQL is not supported yet; write `sqlite:PATH` or `sqlite::memory:`"
        );
        assert!("sqlite:".parse::<StoreUrl>().is_err());
        assert!("sqlite://x".parse::<StoreUrl>().is_err());
    }
}

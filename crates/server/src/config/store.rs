//! `store`: where events and tasks are kept.

use std::fmt;
use std::path::PathBuf;

use pointsman_store_postgres::Endpoint;

use super::decode::parsed;
use super::fault::Findings;
use super::place::Origin;
use super::yaml::Node;

/// Where events and tasks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file, relative to the working folder of the process.
    Sqlite {
        path: PathBuf,
    },
    /// In memory: gone with the process.
    SqliteMemory,
    Postgres(PostgresUrl),
}

/// The URL of a database of PostgreSQL. Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    url: String,
    shown: String,
    has_password: bool,
}

impl PostgresUrl {
    fn read(url: &str) -> Result<Self, String> {
        let endpoint = Endpoint::parse(url).map_err(|error| error.to_string())?;
        Ok(Self { url: url.into(), shown: endpoint.to_string(), has_password: endpoint.has_password() })
    }

    /// As it was given: what a connection is opened with, and nothing to be shown.
    pub fn whole(&self) -> &str {
        &self.url
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path } => write!(f, "sqlite:{}", path.display()),
            Self::SqliteMemory => f.write_str("sqlite::memory:"),
            Self::Postgres(url) => write!(f, "{url}"),
        }
    }
}

impl std::str::FromStr for StoreUrl {
    type Err = String;

    /// Messages name the scheme at most: the rest of a URL may hold a password.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write `sqlite:PATH`, `sqlite::memory:` or `postgres://USER@HOST/DATABASE`";
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
            "postgres" | "postgresql" => PostgresUrl::read(text).map(Self::Postgres),
            "redis" | "rediss" => Err(format!("a store on Redis is not supported yet; {FORM}")),
            other => Err(format!("{other:?} is not a kind of store; {FORM}")),
        }
    }
}

pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<StoreUrl> {
    let url = parsed(node, findings, str::parse)?;
    if let StoreUrl::Postgres(PostgresUrl { has_password: true, .. }) = &url {
        let seen_by = match &node.place.source.origin {
            Origin::File(_) => Some("reads the file"),
            Origin::Flag(_) => Some("lists the processes of this machine"),
            Origin::Env(_) | Origin::Default => None,
        };
        if let Some(does) = seen_by {
            let message = format!(
                "whoever {does} sees the password of the database; put the URL into POINTSMAN_STORE, or into a file of \
                 its own that POINTSMAN_STORE_FILE names"
            );
            findings.warn(&node.place, message);
        }
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read as read_text;
    use super::*;

    #[test]
    fn stores_read_back_as_they_show() {
        let texts = [
            "sqlite:pointsman.db",
            "sqlite:/var/lib/p.db",
            "sqlite::memory:",
            "sqlite:a b.db",
            "postgres://me@host:5432/db",
        ];
        for text in texts {
            assert_eq!(text.parse::<StoreUrl>().map(|url| url.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_password_is_kept_and_never_shown() {
        for text in ["postgres://me:hunter2@host/db", "postgresql://me@host/db?password=hunter2"] {
            let url: StoreUrl = text.parse().unwrap();
            for shown in [url.to_string(), format!("{url:?}")] {
                assert!(!shown.contains("hunter2") && shown.contains("me@host:5432/db"), "{shown}");
            }
            let StoreUrl::Postgres(url) = url else { panic!("{url}") };
            assert_eq!(url.whole(), text);
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_repeating_a_password() {
        for text in [
            "postgres://me:hunter2@host:x/db",
            "postgres://me:hunter2@host/db?sslmode=perhaps",
            "postgres://me:hunter2@host/db?nonsense=1",
            "redis://:hunter2@host",
            "mysql://me:hunter2@host",
            "hunter2",
        ] {
            let message = text.parse::<StoreUrl>().unwrap_err();
            assert!(!message.contains("hunter2"), "{message}");
        }
        let message = "redis://host".parse::<StoreUrl>().unwrap_err();
        assert_eq!(
            message,
            "a store on Redis is not supported yet; write `sqlite:PATH`, `sqlite::memory:` or \
             `postgres://USER@HOST/DATABASE`"
        );
        assert!("sqlite:".parse::<StoreUrl>().is_err());
        assert!("sqlite://x".parse::<StoreUrl>().is_err());
    }

    #[test]
    fn a_fault_in_a_file_does_not_show_it_either() {
        let text = "\"postgres://me:hunter2@host/db?sslmode=perhaps\"";
        let faults = read_text(text, read).unwrap_err();
        assert!(faults.len() == 1 && !faults[0].contains("hunter2"), "{faults:?}");
    }
}

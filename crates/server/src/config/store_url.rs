//! Reads the setting `store`: the URL of the store.

use std::fmt;
use std::path::PathBuf;

use pointsman_core::suggestion::suggest_name;
use pointsman_store::store_kind::{MissingStoreFeature, StoreKind};

use super::decode::parse_scalar;
use super::fault::Findings;
use super::location::SettingOrigin;
use super::yaml::YamlNode;

/// The store of events and tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file, relative to the working folder of the process.
    Sqlite {
        path: PathBuf,
    },
    /// In memory: lost when the process ends.
    SqliteMemory,
    Postgres(DatabaseUrl),
    Redis(DatabaseUrl),
}

/// The URL of a database on a server. `Display` and `Debug` leave out the password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    full_url: String,
    display_url: String,
    has_password: bool,
}

impl DatabaseUrl {
    #[cfg(feature = "postgres")]
    fn parse_postgres(url: &str) -> Result<Self, String> {
        let endpoint = pointsman_store_postgres::Endpoint::parse(url).map_err(|error| error.to_string())?;
        Ok(Self {
            full_url: url.into(),
            display_url: endpoint.to_string(),
            has_password: endpoint.has_password_in_url(),
        })
    }

    #[cfg(feature = "redis")]
    fn parse_redis(url: &str) -> Result<Self, String> {
        let endpoint = pointsman_store_redis::Endpoint::parse(url).map_err(|error| error.to_string())?;
        Ok(Self {
            full_url: url.into(),
            display_url: endpoint.to_string(),
            has_password: endpoint.has_password_in_url(),
        })
    }

    /// Whether the URL itself contains a password.
    pub fn has_password(&self) -> bool {
        self.has_password
    }

    /// The URL with its password, to open a connection. It must not be displayed.
    pub fn full_url(&self) -> &str {
        &self.full_url
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display_url)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display_url)
    }
}

impl StoreUrl {
    pub fn kind(&self) -> StoreKind {
        match self {
            Self::Sqlite { .. } | Self::SqliteMemory => StoreKind::Sqlite,
            Self::Postgres(_) => StoreKind::Postgres,
            Self::Redis(_) => StoreKind::Redis,
        }
    }

    #[cfg(feature = "sqlite")]
    fn parse_sqlite(url: &str) -> Result<Self, String> {
        match url.strip_prefix("sqlite:").unwrap_or(url) {
            ":memory:" => Ok(Self::SqliteMemory),
            path if path.is_empty() || path.contains('\0') => {
                Err(format!("the path is missing; {STORE_URL_FORMS}"))
            }
            path if path.starts_with("//") && !path.starts_with("///") => {
                Err(format!("`sqlite:` is followed by a path, not by `//`; {STORE_URL_FORMS}"))
            }
            path => Ok(Self::Sqlite { path: path.into() }),
        }
    }

    /// The error of a program that was compiled without the Cargo feature for this kind of store.
    pub fn missing_feature_error(&self) -> MissingStoreFeature {
        MissingStoreFeature(self.kind())
    }

    /// The URL of a database that several nodes can share; none for SQLite.
    pub fn shared_database_url(&self) -> Option<&DatabaseUrl> {
        match self {
            Self::Sqlite { .. } | Self::SqliteMemory => None,
            Self::Postgres(url) | Self::Redis(url) => Some(url),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path } => write!(f, "sqlite:{}", path.display()),
            Self::SqliteMemory => f.write_str("sqlite::memory:"),
            Self::Postgres(url) | Self::Redis(url) => write!(f, "{url}"),
        }
    }
}

const STORE_URL_FORMS: &str = "write `sqlite:PATH`, `sqlite::memory:`, `postgres://USER@HOST/DATABASE` or `redis://HOST:PORT` (rediss if it is \
     encrypted, redis+sentinel and redis+cluster for several hosts)";

impl std::str::FromStr for StoreUrl {
    type Err = String;

    /// Parses a store URL. Errors repeat the scheme at most: the rest may contain a password.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, _)) = text.split_once(':') else {
            return Err(format!("a store is given as a URL; {STORE_URL_FORMS}"));
        };
        let Some(kind) = StoreKind::from_scheme(scheme) else {
            return match suggest_name(scheme, StoreKind::SCHEMES.map(|(known, _)| known)) {
                Some(suggestion) => {
                    Err(format!("{scheme:?} is not a kind of store; did you mean `{suggestion}`?"))
                }
                None => Err(format!("{scheme:?} is not a kind of store; {STORE_URL_FORMS}")),
            };
        };
        match kind {
            #[cfg(feature = "sqlite")]
            StoreKind::Sqlite => Self::parse_sqlite(text),
            #[cfg(feature = "postgres")]
            StoreKind::Postgres => DatabaseUrl::parse_postgres(text).map(Self::Postgres),
            #[cfg(feature = "redis")]
            StoreKind::Redis => DatabaseUrl::parse_redis(text).map(Self::Redis),
            #[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "redis")))]
            missing => Err(MissingStoreFeature(missing).to_string()),
        }
    }
}

pub(super) fn read_store_url(node: &YamlNode, findings: &mut Findings) -> Option<StoreUrl> {
    let url: StoreUrl = parse_scalar(node, findings, str::parse)?;
    if url.shared_database_url().is_some_and(|url| url.has_password) {
        let reader = match &node.location.config_text.origin {
            SettingOrigin::File(_) => Some("reads the file"),
            SettingOrigin::Flag(_) => Some("lists the processes of this machine"),
            SettingOrigin::Env(_) | SettingOrigin::Default => None,
        };
        if let Some(reader) = reader {
            let message = format!(
                "everyone who {reader} can see the database password; put the URL into POINTSMAN_STORE, or into a file of \
                 its own that POINTSMAN_STORE_FILE names"
            );
            findings.add_warning(&node.location, message);
        }
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_value_from_yaml;
    use super::*;

    #[test]
    fn displayed_store_urls_parse_to_the_same_store() {
        let texts = [
            "sqlite:pointsman.db",
            "sqlite:/var/lib/p.db",
            "sqlite::memory:",
            "sqlite:a b.db",
            "postgres://me@host:5432/db",
            "redis://host:6379",
            "rediss://host:6379/1?prefix=team:",
            "redis+sentinel://a:26379,b:26379/mymaster",
            "redis+cluster://a:6379,b:7000?prefix={team}:",
        ];
        for text in texts {
            assert_eq!(text.parse::<StoreUrl>().map(|url| url.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_database_password_is_kept_but_never_displayed() {
        for (text, displayed) in [
            ("postgres://me:hunter2@host/db", "me@host:5432/db"),
            ("postgresql://me@host/db?password=hunter2", "me@host:5432/db"),
            ("redis://me:hunter2@host/1", "me@host:6379/1"),
            ("rediss+cluster://me:hunter2@a,b", "me@a:6379,b:6379"),
            ("redis+sentinel://a/mymaster?sentinel_password=hunter2", "a:26379/mymaster"),
        ] {
            let url: StoreUrl = text.parse().unwrap();
            for output in [url.to_string(), format!("{url:?}")] {
                assert!(!output.contains("hunter2") && output.contains(displayed), "{output}");
            }
            assert_eq!(url.shared_database_url().map(DatabaseUrl::full_url), Some(text));
        }
    }

    #[test]
    fn errors_of_invalid_store_urls_do_not_repeat_the_password() {
        for text in [
            "postgres://me:hunter2@host:x/db",
            "postgres://me:hunter2@host/db?sslmode=perhaps",
            "postgres://me:hunter2@host/db?nonsense=1",
            "redis://:hunter2@host:x",
            "redis://me:hunter2@host/?nonsense=1",
            "redis+sentinel://:hunter2@host",
            "redis+cluster://:hunter2@host/1",
            "redis:hunter2",
            "mysql://me:hunter2@host",
            "hunter2",
        ] {
            let message = text.parse::<StoreUrl>().unwrap_err();
            assert!(!message.contains("hunter2"), "{message}");
        }
        let message = "mysql://host".parse::<StoreUrl>().unwrap_err();
        assert_eq!(
            message,
            "\"mysql\" is not a kind of store; write `sqlite:PATH`, `sqlite::memory:`, `postgres://USER@HOST/DATABASE` or \
             `redis://HOST:PORT` (rediss if it is encrypted, redis+sentinel and redis+cluster for several hosts)"
        );
        for (text, suggestion) in
            [("reds://h", "redis"), ("redis+sentinal://h/m", "redis+sentinel"), ("postgress://h", "postgres")]
        {
            let message = text.parse::<StoreUrl>().unwrap_err();
            assert!(message.ends_with(&format!("; did you mean `{suggestion}`?")), "{message}");
        }
        assert!("sqlite:".parse::<StoreUrl>().is_err());
        assert!("sqlite://x".parse::<StoreUrl>().is_err());
    }

    #[test]
    fn a_store_url_fault_in_a_file_does_not_show_the_password() {
        for text in ["postgres://me:hunter2@host/db?sslmode=perhaps", "redis+cluster://:hunter2@a,b/1"] {
            let faults = read_value_from_yaml(&format!("\"{text}\""), read_store_url).unwrap_err();
            assert!(faults.len() == 1 && !faults[0].contains("hunter2"), "{faults:?}");
        }
    }
}

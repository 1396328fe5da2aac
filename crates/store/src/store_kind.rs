//! The kinds of stores that a URL can name, whether or not they are compiled in.

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// A file, or memory.
    Sqlite,
    /// A PostgreSQL database.
    Postgres,
    /// A Redis database.
    Redis,
}

/// The error of a store that was left out when the program was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this program was compiled without the Cargo feature `{}`, which the store needs", .0.name())]
pub struct MissingStoreFeature(pub StoreKind);

impl StoreKind {
    /// The schemes of store URLs.
    pub const SCHEMES: [(&str, Self); 9] = [
        ("sqlite", Self::Sqlite),
        ("postgres", Self::Postgres),
        ("postgresql", Self::Postgres),
        ("redis", Self::Redis),
        ("rediss", Self::Redis),
        ("redis+sentinel", Self::Redis),
        ("rediss+sentinel", Self::Redis),
        ("redis+cluster", Self::Redis),
        ("rediss+cluster", Self::Redis),
    ];

    /// Returns the kind of store that a URL of this scheme names.
    pub fn from_scheme(scheme: &str) -> Option<Self> {
        Self::SCHEMES.iter().find(|(known, _)| *known == scheme).map(|(_, kind)| *kind)
    }

    /// Returns the kind as one word, which is also the Cargo feature that compiles it in.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }
}

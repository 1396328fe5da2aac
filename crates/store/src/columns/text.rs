//! Named texts, and the digests of objects in configuration files.

use std::borrow::Cow;

use super::columns;

columns! {
    /// The columns of a named text: routes, weights of tenants and others.
    NamedTextColumns<'a> key(name) {
        name: Cow<'a, str>,
        text: Cow<'a, str>,
    }
}

columns! {
    /// The columns of the digest of an object in a configuration file.
    FileDigestColumns<'a> key(key) {
        key: Cow<'a, str>,
        digest: Cow<'a, str>,
    }
}

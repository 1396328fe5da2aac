//! The shape of the whole configuration: which settings there are, and where. Environment variables and flags
//! are checked against it; the sections themselves are read in the files of their names.

use super::decode::Keys;
use super::{
    chains, handlers, network, retention, retry, run, schedules, server, server_limits, sources, tenants,
    tokens,
};

pub(super) const ROOT: Keys = Keys {
    of: "the configuration",
    known: &[
        "store",
        "name",
        "server",
        "workers",
        "rooms",
        "journal",
        "history",
        "objects",
        "network",
        "auth",
        "tenants",
        "handlers",
        "event_handlers",
        "sources",
        "schedules",
        "chains",
    ],
    later: &[],
};

/// What lies at a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// A map with these keys.
    Section(&'static Keys),
    /// A map with names chosen by its author.
    Named,
    Value,
}

/// What lies at a path of existing keys.
pub(super) fn shape(path: &[&str]) -> Shape {
    match path {
        [] => Shape::Section(&ROOT),
        ["server"] => Shape::Section(&server::KEYS),
        ["server", "limits"] => Shape::Section(&server_limits::KEYS),
        ["journal"] => Shape::Section(&retention::JOURNAL),
        ["history"] => Shape::Section(&retention::HISTORY),
        ["objects"] => Shape::Section(&retention::OBJECTS),
        ["network"] => Shape::Section(&network::KEYS),
        ["auth"] => Shape::Section(&tokens::AUTH),
        ["tenants" | "handlers" | "sources" | "schedules" | "chains"] => Shape::Named,
        ["tenants", _] => Shape::Section(&tenants::KEYS),
        ["handlers", _] => Shape::Section(&handlers::KEYS),
        ["sources", _] => Shape::Section(&sources::KEYS),
        ["handlers" | "sources", _, "run"] => Shape::Section(&run::EITHER),
        ["handlers" | "sources", _, "retry"] => Shape::Section(&retry::KEYS),
        ["schedules", _] => Shape::Section(&schedules::KEYS),
        ["schedules", _, "emit"] => Shape::Section(&schedules::EMIT),
        ["schedules", _, "order"] => Shape::Section(&schedules::ORDER),
        ["chains", _] => Shape::Section(&chains::KEYS),
        _ => Shape::Value,
    }
}

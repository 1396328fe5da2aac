//! The schema of the configuration: which settings exist at which path. Environment variables and flags are checked
//! against it; each section is read in the module of its name.

use super::decode::AllowedKeys;
use super::{
    chains, handler_run, handlers, network, retention, retry, schedules, server, server_limits, sources,
    tenants, tokens,
};

pub(super) const ROOT_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "the configuration",
    names: &[
        "store",
        "name",
        "server",
        "workers",
        "services",
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
    not_yet_supported: &[],
};

/// The shape of the setting at a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum SettingShape {
    /// A map with these keys.
    FixedKeys(&'static AllowedKeys),
    /// A map whose keys are names that the author chooses.
    AuthorNamedMap,
    /// A value, which a variable or flag sets as a whole.
    Value,
}

/// The shape of the setting at a path of existing keys.
pub(super) fn setting_shape_at(path: &[&str]) -> SettingShape {
    match path {
        [] => SettingShape::FixedKeys(&ROOT_KEYS),
        ["server"] => SettingShape::FixedKeys(&server::SERVER_KEYS),
        ["server", "limits"] => SettingShape::FixedKeys(&server_limits::SERVER_LIMIT_KEYS),
        ["journal"] => SettingShape::FixedKeys(&retention::JOURNAL_KEYS),
        ["history"] => SettingShape::FixedKeys(&retention::HISTORY_KEYS),
        ["objects"] => SettingShape::FixedKeys(&retention::OBJECTS_KEYS),
        ["network"] => SettingShape::FixedKeys(&network::NETWORK_KEYS),
        ["auth"] => SettingShape::FixedKeys(&tokens::AUTH_KEYS),
        ["tenants" | "handlers" | "sources" | "schedules" | "chains"] => SettingShape::AuthorNamedMap,
        ["tenants", _] => SettingShape::FixedKeys(&tenants::TENANT_KEYS),
        ["handlers", _] => SettingShape::FixedKeys(&handlers::HANDLER_KEYS),
        ["sources", _] => SettingShape::FixedKeys(&sources::SOURCE_KEYS),
        ["handlers" | "sources", _, "run"] => SettingShape::FixedKeys(&handler_run::ANY_RUN_KEYS),
        ["handlers" | "sources", _, "retry"] => SettingShape::FixedKeys(&retry::RETRY_KEYS),
        ["schedules", _] => SettingShape::FixedKeys(&schedules::SCHEDULE_KEYS),
        ["schedules", _, "emit"] => SettingShape::FixedKeys(&schedules::EMIT_KEYS),
        ["schedules", _, "order"] => SettingShape::FixedKeys(&schedules::ORDER_KEYS),
        ["chains", _] => SettingShape::FixedKeys(&chains::CHAIN_KEYS),
        _ => SettingShape::Value,
    }
}

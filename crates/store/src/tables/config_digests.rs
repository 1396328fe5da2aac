//! The table of configuration digests.

use std::collections::BTreeMap;

use crate::error::TableResult;

/// Digests of the objects that the configuration defines.
pub trait ConfigDigestTable {
    fn list_configured_object_digests(&mut self) -> TableResult<BTreeMap<String, String>>;

    fn write_configured_object_digest(&mut self, key: &str, digest: &str) -> TableResult<()>;

    fn delete_configured_object_digest(&mut self, key: &str) -> TableResult<()>;
}

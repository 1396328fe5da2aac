//! Digests of configured objects.

use std::collections::BTreeMap;

use pointsman_store::error::TableResult;
use pointsman_store::tables::ConfigDigestTable;

use super::RedisTables;
use crate::keys::Table;
use crate::rows;

impl ConfigDigestTable for RedisTables {
    fn list_configured_object_digests(&mut self) -> TableResult<BTreeMap<String, String>> {
        let rows = self.overlay.read_table(Table::ConfiguredObjectDigests)?;
        rows.iter().map(|(key, digest)| Ok((rows::decode_text(key)?, rows::decode_text(digest)?))).collect()
    }

    fn write_configured_object_digest(&mut self, key: &str, digest: &str) -> TableResult<()> {
        self.overlay.write_row(Table::ConfiguredObjectDigests, key, digest.into());
        Ok(())
    }

    fn delete_configured_object_digest(&mut self, key: &str) -> TableResult<()> {
        self.overlay.delete_row(Table::ConfiguredObjectDigests, key);
        Ok(())
    }
}

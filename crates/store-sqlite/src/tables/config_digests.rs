//! Digests of configured objects.

use std::collections::BTreeMap;

use pointsman_store::tables::ConfigDigestTable;

use super::SqliteTables;
use crate::error::TableResult;

impl ConfigDigestTable for SqliteTables {
    fn list_configured_object_digests(&mut self) -> TableResult<BTreeMap<String, String>> {
        let mut statement =
            self.conn.prepare_cached("SELECT key, digest FROM pointsman_configured_object_digest")?;
        let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn write_configured_object_digest(&mut self, key: &str, digest: &str) -> TableResult<()> {
        let sql = "INSERT OR REPLACE INTO pointsman_configured_object_digest (key, digest) VALUES (?1, ?2)";
        self.conn.prepare_cached(sql)?.execute((key, digest))?;
        Ok(())
    }

    fn delete_configured_object_digest(&mut self, key: &str) -> TableResult<()> {
        self.conn
            .prepare_cached("DELETE FROM pointsman_configured_object_digest WHERE key = ?1")?
            .execute([key])?;
        Ok(())
    }
}

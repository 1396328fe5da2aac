//! Digests of configured objects.

use std::collections::BTreeMap;

use pointsman_store::columns::FileDigestColumns;
use pointsman_store::expand_sql;
use pointsman_store::tables::ConfigDigestTable;

use super::SqliteTables;
use super::queries::{query_all, read_columns, write_columns};
use crate::error::TableResult;

impl ConfigDigestTable for SqliteTables {
    fn list_configured_object_digests(&mut self) -> TableResult<BTreeMap<String, String>> {
        let sql = expand_sql!("SELECT :file_digest_columns FROM pointsman_configured_object_digest");
        let digests = query_all(&self.conn, sql, [], |row| {
            let FileDigestColumns { key, digest } = read_columns(row)?;
            Ok((key.into(), digest.into()))
        });
        Ok(digests?.into_iter().collect())
    }

    fn write_configured_object_digest(&mut self, key: &str, digest: &str) -> TableResult<()> {
        let sql = expand_sql!(
            "INSERT OR REPLACE INTO pointsman_configured_object_digest (:file_digest_columns)
             VALUES (:file_digest_parameters)"
        );
        write_columns(&self.conn, sql, &FileDigestColumns { key: key.into(), digest: digest.into() })
    }

    fn delete_configured_object_digest(&mut self, key: &str) -> TableResult<()> {
        self.conn
            .prepare_cached("DELETE FROM pointsman_configured_object_digest WHERE key = ?1")?
            .execute([key])?;
        Ok(())
    }
}

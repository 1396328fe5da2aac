//! Digests of configured objects.

use std::collections::BTreeMap;

use pointsman_store::error::TableResult;
use pointsman_store::tables::ConfigDigestTable;

use super::PgTables;
use crate::rows::read_column;
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl ConfigDigestTable for PgTables {
    fn list_configured_object_digests(&mut self) -> TableResult<BTreeMap<String, String>> {
        let digests = self.query_and_decode_rows(
            query!("file_digest/list_configured_object_digests"),
            vec![],
            |row| Ok((read_column(row, 0)?, read_column(row, 1)?)),
        )?;
        Ok(digests.into_iter().collect())
    }

    fn write_configured_object_digest(&mut self, key: &str, digest: &str) -> TableResult<()> {
        let params = params![key.to_string(), digest.to_string()];
        self.add_to_batch(SqlCommand::Query(
            query!("file_digest/write_configured_object_digest", TEXT, TEXT),
            params,
        ));
        Ok(())
    }

    fn delete_configured_object_digest(&mut self, key: &str) -> TableResult<()> {
        self.add_to_batch(SqlCommand::Query(
            query!("file_digest/delete_configured_object_digest", TEXT),
            params![key.to_string()],
        ));
        Ok(())
    }
}

//! Objects: the last event of each, and when retention last found it in use.

use pointsman_core::{EventId, Tenant};
use pointsman_store::row::{IdleObject, ObjectRow};
use pointsman_store::tables::ObjectTable;
use rusqlite::Row;

use super::SqliteTables;
use super::row::{query_all, query_first};
use crate::error::{Fault, TableResult};

impl ObjectTable for SqliteTables {
    fn read_object(&mut self, tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>> {
        let sql = "SELECT last_event, last_sent, number FROM pointsman_object WHERE tenant = ?1 AND key = ?2";
        query_first(&self.conn, sql, (tenant.as_str(), key), |row| object_from_row(row, 0))
    }

    /// Inserts or updates an object. The column `checked` of an existing object stays as it is; otherwise its index would
    /// be written with each event.
    fn write_object(&mut self, tenant: &Tenant, key: &str, object: &ObjectRow) -> TableResult<()> {
        let sql = "INSERT INTO pointsman_object (tenant, key, last_event, last_sent, number, checked)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?3)
                   ON CONFLICT (tenant, key) DO UPDATE
                   SET last_event = excluded.last_event, last_sent = excluded.last_sent, number = excluded.number";
        let row = (
            tenant.as_str(),
            key,
            object.last_event.as_i64(),
            object.encode_last_sent_events(),
            object.number,
        );
        self.conn.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    fn list_idle_objects(&mut self, up_to: EventId, limit: usize) -> TableResult<Vec<IdleObject>> {
        let sql = "SELECT tenant, key, last_event, last_sent, number FROM pointsman_object
                   WHERE checked <= ?1 ORDER BY checked LIMIT ?2";
        query_all(&self.conn, sql, (up_to.as_i64(), limit as i64), |row| {
            let tenant: String = row.get(0)?;
            let tenant = Tenant::new(tenant).map_err(Fault::damaged)?;
            Ok(IdleObject {
                tenant,
                key: row.get(1)?,
                row: object_from_row(row, 2)?,
                has_outbox_events: false,
            })
        })
    }

    fn mark_objects_in_use(&mut self, objects: &[(Tenant, String, EventId)]) -> TableResult<()> {
        let sql = "UPDATE pointsman_object SET checked = ?3 WHERE tenant = ?1 AND key = ?2";
        let mut update = self.conn.prepare_cached(sql)?;
        for (tenant, key, checked) in objects {
            update.execute((tenant.as_str(), key, checked.as_i64()))?;
        }
        Ok(())
    }

    fn mark_objects_of_events_in_use(
        &mut self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> TableResult<()> {
        let sql = "UPDATE pointsman_object SET checked = ?3
                   WHERE checked <= ?2 AND (tenant, key) = (SELECT tenant, key FROM pointsman_journal WHERE id = ?1)";
        let mut update = self.conn.prepare_cached(sql)?;
        for event in events {
            update.execute((event.as_i64(), up_to.as_i64(), checked.as_i64()))?;
        }
        Ok(())
    }

    fn delete_objects(&mut self, objects: &[IdleObject]) -> TableResult<()> {
        let mut delete =
            self.conn.prepare_cached("DELETE FROM pointsman_object WHERE tenant = ?1 AND key = ?2")?;
        for IdleObject { tenant, key, .. } in objects {
            delete.execute((tenant.as_str(), key))?;
        }
        Ok(())
    }
}

/// Reads the columns last_event, last_sent and number, from column `first_column` on.
fn object_from_row(row: &Row<'_>, first_column: usize) -> TableResult<ObjectRow> {
    let last_sent = row.get_ref(first_column + 1)?.as_blob().map_err(Fault::damaged)?;
    let last_event = EventId::from_i64(row.get(first_column)?);
    Ok(ObjectRow {
        number: row.get(first_column + 2)?,
        last_event,
        last_sent_events: ObjectRow::decode_last_sent_events(last_sent),
    })
}

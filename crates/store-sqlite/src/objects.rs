//! What is remembered of an object beyond its events: its number, its last event, and the last one that each handler
//! was sent.
//!
//! Objects are numbered in the order in which they were first heard of. Lanes are made of these numbers, so that the
//! lanes of a backlog lie in the file in the order in which they are worked off, and ending a task does not touch a
//! page that no other task of its time touches.

use pointsman_core::{EventId, Tenant};
use rusqlite::OptionalExtension;

use crate::error::{Fault, Result};
use crate::state::HandlerId;
use crate::writer::Txn;

pub(crate) type ObjectNumber = i64;

pub(crate) struct Object {
    pub(crate) number: ObjectNumber,
    pub(crate) last: Option<EventId>,
    sent: Vec<(HandlerId, EventId)>,
}

impl Object {
    pub(crate) fn sent_to(&self, handler: HandlerId) -> Option<EventId> {
        self.sent.iter().find(|(h, _)| *h == handler).map(|(_, id)| *id)
    }
}

impl Txn<'_> {
    /// Makes `id` the object's last event, sent to these handlers; answers what was remembered before.
    pub(crate) fn advance_object(
        &mut self,
        tenant: &Tenant,
        key: &str,
        handlers: &[(HandlerId, bool)],
        id: EventId,
    ) -> Result<Object> {
        let before = match self.load_object(tenant, key)? {
            Some(known) => known,
            None => Object { number: self.state.objects.take(self.conn)?, last: None, sent: Vec::new() },
        };
        let others = before.sent.iter().filter(|(h, _)| !handlers.iter().any(|(new, _)| new == h)).copied();
        let sent: Vec<_> = others.chain(handlers.iter().map(|(h, _)| (*h, id))).collect();
        let sql = "INSERT OR REPLACE INTO pointsman_object (tenant, key, last, sent, number)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = (tenant.as_str(), key, id.as_i64(), encode_sent(&sent), before.number);
        self.conn.prepare_cached(sql)?.execute(row)?;
        Ok(before)
    }

    fn load_object(&self, tenant: &Tenant, key: &str) -> Result<Option<Object>> {
        let sql = "SELECT last, sent, number FROM pointsman_object WHERE tenant = ?1 AND key = ?2";
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query((tenant.as_str(), key))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let sent = row.get_ref(1)?.as_blob().map_err(Fault::damaged)?;
        let last = Some(EventId::from_i64(row.get(0)?));
        Ok(Some(Object { number: row.get(2)?, last, sent: decode_sent(sent) }))
    }

    /// The number of an object that has had an event.
    pub(crate) fn object_of(&self, tenant: &Tenant, key: Option<&str>) -> Result<Option<ObjectNumber>> {
        let Some(key) = key else { return Ok(None) };
        let sql = "SELECT number FROM pointsman_object WHERE tenant = ?1 AND key = ?2";
        let mut statement = self.conn.prepare_cached(sql)?;
        let found = statement.query_row((tenant.as_str(), key), |r| r.get(0)).optional()?;
        found.ok_or_else(|| Fault::damaged(format!("nothing is known of the object {key}"))).map(Some)
    }
}

/// Pairs of a handler's number (4 bytes) and an id (8 bytes), little-endian.
fn encode_sent(sent: &[(HandlerId, EventId)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(sent.len() * 12);
    for (handler, id) in sent {
        bytes.extend_from_slice(&(*handler as u32).to_le_bytes());
        bytes.extend_from_slice(&id.get().to_le_bytes());
    }
    bytes
}

fn decode_sent(bytes: &[u8]) -> Vec<(HandlerId, EventId)> {
    let (pairs, _) = bytes.as_chunks::<12>();
    pairs
        .iter()
        .map(|pair| {
            let [h0, h1, h2, h3, id @ ..] = *pair;
            let id = i64::from_le_bytes(id);
            (i64::from(u32::from_le_bytes([h0, h1, h2, h3])), EventId::from_i64(id))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_reads_back() {
        let sent = [(1, EventId::new(5).unwrap()), (70_000, EventId::MAX)];
        assert_eq!(decode_sent(&encode_sent(&sent)), sent);
        assert!(decode_sent(&[]).is_empty());
    }
}

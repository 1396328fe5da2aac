//! Idempotency records: the response to a request, written in the transaction that carries it out. Of concurrent
//! duplicates exactly one is carried out, and a repeat gets the recorded response, even after a crash.

use pointsman_core::Timestamp;
use pointsman_core::store::{IdempotencyError, IdempotencyKey, IdempotencyRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Fault, TableResult};
use crate::tables::IdempotencyTable;
use crate::writer::Txn;

impl<T: IdempotencyTable> Txn<'_, T> {
    /// Returns the response recorded under a key; `None` if the request has no key or the key is new. A key that was
    /// used for another request is refused. So is a response of another type, which belongs to another request: a fault
    /// here would fail every job of the commit.
    pub(crate) fn read_recorded_answer<A: DeserializeOwned>(
        &mut self,
        idempotency: Option<&IdempotencyKey>,
    ) -> TableResult<Result<Option<A>, IdempotencyError>> {
        let Some(idempotency_key) = idempotency else { return Ok(Ok(None)) };
        let Some((digest, answer)) =
            self.tables.read_idempotency_record(&idempotency_key.tenant, &idempotency_key.key)?
        else {
            return Ok(Ok(None));
        };
        let answer =
            if digest == idempotency_key.request_digest { serde_json::from_str(&answer).ok() } else { None };
        Ok(match answer {
            Some(answer) => Ok(Some(answer)),
            None => Err(IdempotencyError::Conflict(idempotency_key.key.clone())),
        })
    }

    /// Returns the response recorded under a key as text, for requests of any kind.
    pub(crate) fn read_recorded_answer_text(
        &mut self,
        idempotency: &IdempotencyKey,
    ) -> TableResult<Result<Option<String>, IdempotencyError>> {
        let text = |answer| match answer {
            Value::String(text) => text,
            answer => answer.to_string(),
        };
        Ok(self.read_recorded_answer::<Value>(Some(idempotency))?.map(|answer| answer.map(text)))
    }

    /// Records the response to a request, if the request has a key.
    pub(crate) fn write_idempotency_record<A: Serialize + ?Sized>(
        &mut self,
        idempotency: Option<&IdempotencyKey>,
        answer: &A,
        now: Timestamp,
    ) -> TableResult<()> {
        let Some(idempotency_key) = idempotency else { return Ok(()) };
        let answer = serde_json::to_string(answer).map_err(Fault::damaged)?;
        self.tables.write_idempotency_record(idempotency_key, &answer, now)
    }

    /// Records a response unless the key has one; returns the recorded response.
    pub(crate) fn write_idempotency_record_if_absent(
        &mut self,
        idempotency: &IdempotencyKey,
        answer: String,
        now: Timestamp,
    ) -> TableResult<Result<IdempotencyRecord, IdempotencyError>> {
        Ok(match self.read_recorded_answer::<String>(Some(idempotency))? {
            Ok(Some(answer)) => Ok(IdempotencyRecord { response: answer, repeated: true }),
            Ok(None) => {
                self.write_idempotency_record(Some(idempotency), &answer, now)?;
                Ok(IdempotencyRecord { response: answer, repeated: false })
            }
            Err(conflict) => Err(conflict),
        })
    }
}

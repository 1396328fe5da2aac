//! The columns of each stored row, defined once for all stores.
//!
//! `columns!` defines a struct for each kind of row: its fields are the columns, in their order. Every store reads and
//! writes whole rows through these structs:
//!
//! ```text
//!   ActiveTaskRow ◀──▶ ActiveTaskColumns ◀──▶ cells ─┬─ parameters and result columns of SQLite
//!   (domain types)      (numbers, texts)             ├─ arrays and result columns of PostgreSQL
//!                                                    ├─ bytes of a Redis hash field
//!                                                    └─ checksum of a store copy
//! ```
//!
//! - A store implements [`CellWriter`] and [`CellReader`] for its database.
//! - SQL names the columns as `:task_columns` (see [`mod@crate::expand_sql`]).
//! - `key(…)` lists the columns of the primary key. They come first.

mod audit_entry;
mod chain;
mod counters;
mod event;
mod fire;
mod handler;
mod history;
mod idempotency_record;
mod node;
mod object;
mod order;
mod outbox;
mod queue;
mod rule;
mod schedule;
mod task;
mod text;

use std::borrow::Cow;

use crate::error::{Fault, TableResult};
use crate::expand_sql::is_text_at;

pub use audit_entry::AuditEntryColumns;
pub use chain::ChainColumns;
pub use counters::CounterColumns;
pub use event::EventColumns;
pub use fire::FireColumns;
pub use handler::HandlerColumns;
pub use history::{ArchivedTaskColumns, AttemptColumns, LogLineColumns};
pub use idempotency_record::IdempotencyRecordColumns;
pub use node::NodeColumns;
pub use object::ObjectColumns;
pub use order::{EndedOrderColumns, OrderColumns};
pub use outbox::{OutboxKeyColumns, OutboxReceiptColumns, OutboxRefusalColumns};
pub use queue::QueueColumns;
pub use rule::{RuleColumns, UnknownTenantRuleColumns};
pub use schedule::ScheduleProgressColumns;
pub use task::ActiveTaskColumns;
pub use text::{FileDigestColumns, NamedTextColumns};

/// A column: its name in SQL, and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub cell_type: CellType,
}

/// The type of a column's cells. All types can be null where the field is an `Option`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    /// A number of 64 bits.
    Int8,
    /// A number of 32 bits.
    Int4,
    /// A number of 16 bits: a code.
    Int2,
    Bool,
    Text,
    Bytes,
}

/// The columns of a row.
pub trait Columns<'a>: Sized {
    /// All columns, in their order.
    const COLUMNS: &'static [Column];

    /// Number of columns of the primary key, which come first.
    const KEY_LENGTH: usize;

    /// The same columns with owned texts and bytes.
    type Owned: Columns<'static>;

    /// Writes a cell for each column.
    fn write_cells<W: CellWriter>(&self, writer: &mut W);

    /// Reads a cell for each column.
    fn read_cells<R: CellReader<'a>>(reader: &mut R) -> TableResult<Self>;

    fn into_owned(self) -> Self::Owned;
}

/// Receives the cells of a row in order.
pub trait CellWriter {
    fn write_null(&mut self);

    /// Announces that the next cell, which could be null, is not.
    fn announce_non_null(&mut self) {}

    fn write_number(&mut self, number: i64);

    fn write_flag(&mut self, flag: bool);

    fn write_text(&mut self, text: &str);

    fn write_bytes(&mut self, bytes: &[u8]);
}

/// Returns the cells of a row in order.
pub trait CellReader<'a> {
    /// Returns whether the next cell, which may be null, is null, and skips it if so.
    fn skip_null(&mut self) -> TableResult<bool>;

    fn read_number(&mut self, cell_type: CellType) -> TableResult<i64>;

    fn read_flag(&mut self) -> TableResult<bool>;

    fn read_text(&mut self) -> TableResult<Cow<'a, str>>;

    fn read_bytes(&mut self) -> TableResult<Cow<'a, [u8]>>;
}

/// A value that a column can have.
pub trait Cell<'a>: Sized {
    const TYPE: CellType;

    type Owned: Cell<'static>;

    fn write<W: CellWriter>(&self, writer: &mut W);

    fn read<R: CellReader<'a>>(reader: &mut R) -> TableResult<Self>;

    fn into_owned(self) -> Self::Owned;
}

/// Implements [`Cell`] for a type of numbers.
macro_rules! number_cell {
    ($number:ty, $cell_type:ident) => {
        impl<'a> Cell<'a> for $number {
            const TYPE: CellType = CellType::$cell_type;

            type Owned = Self;

            fn write<W: CellWriter>(&self, writer: &mut W) {
                writer.write_number(i64::from(*self));
            }

            fn read<R: CellReader<'a>>(reader: &mut R) -> TableResult<Self> {
                Self::try_from(reader.read_number(Self::TYPE)?).map_err(Fault::damaged)
            }

            fn into_owned(self) -> Self {
                self
            }
        }
    };
}

number_cell!(i64, Int8);
number_cell!(u32, Int8);
number_cell!(i32, Int4);
number_cell!(u16, Int4);
number_cell!(i16, Int2);

impl<'a> Cell<'a> for bool {
    const TYPE: CellType = CellType::Bool;

    type Owned = Self;

    fn write<W: CellWriter>(&self, writer: &mut W) {
        writer.write_flag(*self);
    }

    fn read<R: CellReader<'a>>(reader: &mut R) -> TableResult<Self> {
        reader.read_flag()
    }

    fn into_owned(self) -> Self {
        self
    }
}

impl<'a> Cell<'a> for Cow<'a, str> {
    const TYPE: CellType = CellType::Text;

    type Owned = Cow<'static, str>;

    fn write<W: CellWriter>(&self, writer: &mut W) {
        writer.write_text(self);
    }

    fn read<R: CellReader<'a>>(reader: &mut R) -> TableResult<Self> {
        reader.read_text()
    }

    fn into_owned(self) -> Cow<'static, str> {
        Cow::Owned(self.into_owned())
    }
}

impl<'a> Cell<'a> for Cow<'a, [u8]> {
    const TYPE: CellType = CellType::Bytes;

    type Owned = Cow<'static, [u8]>;

    fn write<W: CellWriter>(&self, writer: &mut W) {
        writer.write_bytes(self);
    }

    fn read<R: CellReader<'a>>(reader: &mut R) -> TableResult<Self> {
        reader.read_bytes()
    }

    fn into_owned(self) -> Cow<'static, [u8]> {
        Cow::Owned(self.into_owned())
    }
}

impl<'a, C: Cell<'a>> Cell<'a> for Option<C> {
    const TYPE: CellType = C::TYPE;

    type Owned = Option<C::Owned>;

    fn write<W: CellWriter>(&self, writer: &mut W) {
        match self {
            None => writer.write_null(),
            Some(cell) => {
                writer.announce_non_null();
                cell.write(writer);
            }
        }
    }

    fn read<R: CellReader<'a>>(reader: &mut R) -> TableResult<Self> {
        if reader.skip_null()? { Ok(None) } else { C::read(reader).map(Some) }
    }

    fn into_owned(self) -> Self::Owned {
        self.map(C::into_owned)
    }
}

/// Defines a struct with a field for each column of a row, and implements [`Columns`] for it. A field has the name of
/// its column unless `as` gives the column another one: `event_type: Cow<'a, str> as "type"`.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident key() { $($(#[$field_doc:meta])* $field:ident: $cell:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $cell),* }

        $crate::columns::impl_columns!($name, $name, 'a, [], { $($field: $cell),* });
    };
    ($(#[$doc:meta])* $name:ident<$life:lifetime> key($($key:ident),*) {
        $($(#[$field_doc:meta])* $field:ident: $cell:ty $(as $column:literal)?),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name<$life> { $($(#[$field_doc])* pub $field: $cell),* }

        $crate::columns::impl_columns!(
            $name<$life>, $name<'static>, $life, [$($key),*], { $($field: $cell $(as $column)?),* }
        );
    };
}
use columns;

/// Implements [`Columns`] for a struct.
macro_rules! impl_columns {
    ($name:ty, $owned:ty, $life:lifetime, [$($key:ident),*], { $($field:ident: $cell:ty $(as $column:literal)?),* }) => {
        impl<$life> $crate::columns::Columns<$life> for $name {
            const COLUMNS: &'static [$crate::columns::Column] = &[$($crate::columns::Column {
                name: $crate::columns::column_name!($field $($column)?),
                cell_type: <$cell as $crate::columns::Cell<$life>>::TYPE,
            }),*];

            const KEY_LENGTH: usize =
                $crate::columns::check_key(&[$(stringify!($key)),*], &[$(stringify!($field)),*]);

            type Owned = $owned;

            fn write_cells<W: $crate::columns::CellWriter>(&self, writer: &mut W) {
                $($crate::columns::Cell::write(&self.$field, writer);)*
            }

            fn read_cells<R: $crate::columns::CellReader<$life>>(
                reader: &mut R,
            ) -> $crate::error::TableResult<Self> {
                Ok(Self { $($field: $crate::columns::Cell::read(reader)?),* })
            }

            fn into_owned(self) -> Self::Owned {
                type Owned = $owned;
                Owned { $($field: $crate::columns::Cell::into_owned(self.$field)),* }
            }
        }
    };
}
use impl_columns;

/// Returns the number of columns of a key. A key whose columns are not the first ones is a compile error.
const fn check_key(key: &[&str], fields: &[&str]) -> usize {
    let mut index = 0;
    while index < key.len() {
        let (key_column, field) = (key[index].as_bytes(), fields[index].as_bytes());
        assert!(key_column.len() == field.len() && is_text_at(field, 0, key_column), "a key must come first");
        index += 1;
    }
    key.len()
}

/// The name of a column: that of its field, unless it has another one.
macro_rules! column_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $column:literal) => {
        $column
    };
}
use column_name;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use pointsman_core::task::{ErrorReason, Lease, TaskLifecycle, TaskState};
    use pointsman_core::{
        Cause, Context, Event, EventId, EventType, Json, ObjectKey, TaskSeq, Tenant, Timestamp,
    };

    use super::*;
    use crate::row::{ActiveTaskRow, TaskPhase};

    #[derive(Debug, PartialEq)]
    enum WrittenCell {
        Null,
        Number(i64),
        Flag(bool),
        Text(String),
        Bytes(Vec<u8>),
    }

    /// Keeps the cells that are written, to be read again.
    #[derive(Default)]
    struct CellQueue(VecDeque<WrittenCell>);

    impl CellWriter for CellQueue {
        fn write_null(&mut self) {
            self.0.push_back(WrittenCell::Null);
        }

        fn write_number(&mut self, number: i64) {
            self.0.push_back(WrittenCell::Number(number));
        }

        fn write_flag(&mut self, flag: bool) {
            self.0.push_back(WrittenCell::Flag(flag));
        }

        fn write_text(&mut self, text: &str) {
            self.0.push_back(WrittenCell::Text(text.into()));
        }

        fn write_bytes(&mut self, bytes: &[u8]) {
            self.0.push_back(WrittenCell::Bytes(bytes.into()));
        }
    }

    impl<'a> CellReader<'a> for CellQueue {
        fn skip_null(&mut self) -> TableResult<bool> {
            let is_null = self.0.front() == Some(&WrittenCell::Null);
            if is_null {
                self.0.pop_front();
            }
            Ok(is_null)
        }

        fn read_number(&mut self, _cell_type: CellType) -> TableResult<i64> {
            let Some(WrittenCell::Number(number)) = self.0.pop_front() else { panic!("not a number") };
            Ok(number)
        }

        fn read_flag(&mut self) -> TableResult<bool> {
            let Some(WrittenCell::Flag(flag)) = self.0.pop_front() else { panic!("not a flag") };
            Ok(flag)
        }

        fn read_text(&mut self) -> TableResult<Cow<'a, str>> {
            let Some(WrittenCell::Text(text)) = self.0.pop_front() else { panic!("not a text") };
            Ok(text.into())
        }

        fn read_bytes(&mut self) -> TableResult<Cow<'a, [u8]>> {
            let Some(WrittenCell::Bytes(bytes)) = self.0.pop_front() else { panic!("not bytes") };
            Ok(bytes.into())
        }
    }

    /// Writes columns and reads them again.
    fn write_and_read<'a, C: Columns<'a>>(columns: &C) -> C {
        let mut cells = CellQueue::default();
        columns.write_cells(&mut cells);
        assert_eq!(cells.0.len(), C::COLUMNS.len());
        C::read_cells(&mut cells).unwrap()
    }

    fn active_task_row_in_state(phase: TaskPhase, state: TaskState) -> ActiveTaskRow {
        ActiveTaskRow {
            seq: TaskSeq(7),
            queue: 3,
            event: Some(EventId::from_i64(70)),
            order_number: None,
            phase,
            lane: Some(12),
            lane_position: None,
            concurrency_group: None,
            key_bucket: Some(9),
            is_sync: true,
            sync_stage: 1,
            priority: -5,
            score: 8,
            rank: 2,
            prev_sent_event: Some(EventId::from_i64(60)),
            planned_at: None,
            created_at: Timestamp::from_micros(100),
            started_at: Some(Timestamp::from_micros(200)),
            error: Some("é".into()),
            lifecycle: TaskLifecycle {
                state,
                attempt: 4,
                retries: 3,
                crashes: 1,
                out_of_order: true,
                has_lane: true,
                in_lane: false,
            },
        }
    }

    #[test]
    fn an_active_task_in_each_kind_of_state_is_read_as_written() {
        let since = Timestamp::from_micros(200);
        let lease = |until| Lease { node: 5, fence: 6, since, until };
        for (phase, state) in [
            (TaskPhase::Delayed, TaskState::New { due: Timestamp::from_micros(300) }),
            (TaskPhase::Scheduled, TaskState::Scheduled),
            (TaskPhase::Locked, TaskState::Locked(lease(None))),
            (TaskPhase::Locked, TaskState::Locked(lease(Some(Timestamp::from_micros(400))))),
            (TaskPhase::Halted, TaskState::Error { reason: ErrorReason::Crashed, halts_lane: true }),
            (TaskPhase::Missing, TaskState::Missing { due: Timestamp::from_micros(300) }),
        ] {
            let row = active_task_row_in_state(phase, state);
            let columns = write_and_read(&ActiveTaskColumns::from_row(&row));
            assert_eq!(columns.clone().into_owned(), columns);
            assert_eq!(columns.into_row().unwrap(), row);
        }
    }

    #[test]
    fn a_locked_task_without_a_lease_and_an_unknown_phase_are_damage() {
        let row = active_task_row_in_state(TaskPhase::Scheduled, TaskState::Scheduled);
        let columns = ActiveTaskColumns::from_row(&row);
        for phase in [TaskPhase::Locked.code(), 99] {
            assert!(matches!(
                ActiveTaskColumns { phase, ..columns.clone() }.into_row(),
                Err(Fault::Damaged(_))
            ));
        }
    }

    #[test]
    fn a_number_beyond_its_type_is_damage() {
        let mut cells = CellQueue(VecDeque::from([WrittenCell::Number(1 << 40)]));
        assert!(matches!(u16::read(&mut cells), Err(Fault::Damaged(_))));
    }

    #[test]
    fn an_event_is_read_as_written() {
        let event = Event {
            id: EventId::from_i64(70),
            prev: None,
            event_type: EventType::new("record.published").unwrap(),
            key: Some(ObjectKey::from_trusted("record:1")),
            sub_object: None,
            tenant: Tenant::no_tenant(),
            value: Json::from_trusted("{\"a\": 1.0}"),
            context: Context::from_iter([("ip".to_string(), "127.0.0.1".to_string())]),
            cause: Some(Cause { event: None, task: TaskSeq(6), depth: 2 }),
        };
        let columns = write_and_read(&EventColumns::from_event(&event, TaskSeq(7), 2).unwrap());
        assert_eq!(columns.task_seqs().collect::<Vec<_>>(), [TaskSeq(7), TaskSeq(8)]);
        assert_eq!(columns.into_event().unwrap(), event);
    }

    #[test]
    fn the_columns_of_a_key_come_first() {
        assert_eq!((AttemptColumns::KEY_LENGTH, CounterColumns::KEY_LENGTH), (2, 0));
        assert_eq!(RuleColumns::COLUMNS.first().map(|column| column.name), Some("kind"));
    }
}

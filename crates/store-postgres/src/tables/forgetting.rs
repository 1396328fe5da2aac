//! Forgetting. Here only marks are moved; the slices below them are dropped beside the writer (see sweep.rs).

use pointsman_core::{EventId, Timestamp};
use pointsman_store::error::Result;

use super::PgTables;
use crate::link::{Piece, params};
use crate::rows::get;
use crate::session::query;

/// So many ended tasks at most are looked at in one transaction: whoever emits meanwhile waits for it.
const PIECE: i64 = 20_000;
/// So many rows of small tables at most are removed in one transaction.
const ROWS: i64 = 500;

impl PgTables {
    /// Events up to the mark are gone for everybody, except those that unfinished tasks need. Answers how many more.
    pub(super) fn forget_events(&self, forgotten: EventId) -> Result<u64> {
        let query = query!("write/number_of", INT8);
        let number: Option<i64> = self.ask_one(query, params![forgotten.as_i64()], |row| get(row, 0))?;
        let before = self.sequencer.borrow().dropped;
        let Some(number) = number.filter(|number| *number > before) else { return Ok(0) };
        self.sequencer.borrow_mut().dropped = number;
        self.hold(Piece::Statement(query!("write/drop_marks", INT8), params![forgotten.as_i64()]));
        Ok((number - before) as u64)
    }

    /// The history up to the mark is gone. What must stay, though others that ended later go, is counted anew.
    pub(super) fn forget_ended(&self, surplus: i64, before: Timestamp) -> Result<(u64, bool)> {
        let (hidden, archived) = {
            let sequencer = self.sequencer.borrow();
            (sequencer.hidden, sequencer.archived)
        };
        let asked = params![hidden, hidden + PIECE, before.micros()];
        let query = query!("write/expired", INT8, INT8, INT8);
        let rows = self.ask_all(query, asked, |row| Ok((get::<i64>(row, 0)?, get::<bool>(row, 1)?)))?;
        let surplus = usize::try_from(surplus).unwrap_or(0);
        let goes = |(index, (_, old)): &(usize, &(i64, bool))| *index < surplus || *old;
        let beyond = hidden + PIECE < archived;
        let Some(last) = rows.iter().enumerate().filter(goes).map(|(index, _)| index).next_back() else {
            // Where all have been run again, nothing is left to be forgotten, and what comes behind may be.
            let passed = rows.is_empty() && beyond;
            if passed {
                self.sequencer.borrow_mut().hidden += PIECE;
            }
            return Ok((0, passed));
        };
        let passed = rows.iter().take(last + 1).enumerate();
        let stays: Vec<i64> = passed.filter(|row| !goes(row)).map(|(_, (n, _))| *n).collect();
        let gone = last + 1 - stays.len();
        let more = last + 1 == rows.len() && beyond;
        {
            let mut sequencer = self.sequencer.borrow_mut();
            sequencer.hidden = rows.get(last).map_or(hidden, |(n, _)| *n);
            sequencer.archived = archived + stays.len() as i64;
        }
        if !stays.is_empty() {
            let anew: Vec<i64> = (archived + 1..).take(stays.len()).collect();
            self.make_room(None, true)?;
            let query = query!("write/carry_over", INT8_ARRAY, INT8_ARRAY);
            self.ask(query, params![stays, anew])?;
        }
        Ok((gone as u64, more))
    }

    pub(super) fn forget_answers(&self, before: Timestamp) -> Result<bool> {
        let gone = self.ask(query!("write/drop_answers", INT8, INT8), params![before.micros(), ROWS])?;
        Ok(gone.len() as i64 == ROWS)
    }

    pub(super) fn drop_old_ended_orders(&self, before: Timestamp) -> Result<bool> {
        let gone = self.ask(query!("write/drop_ended_orders", INT8, INT8), params![before.micros(), ROWS])?;
        Ok(gone.len() as i64 == ROWS)
    }

    pub(super) fn forget_records(&self, before: Timestamp) -> Result<bool> {
        let mut more = false;
        for query in [
            query!("write/drop_fires", INT8, INT8),
            query!("write/drop_nodes", INT8, INT8),
            query!("write/drop_deeds", INT8, INT8),
        ] {
            more |= self.ask(query, params![before.micros(), ROWS])?.len() as i64 == ROWS;
        }
        Ok(more)
    }
}

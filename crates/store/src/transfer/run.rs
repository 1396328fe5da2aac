//! Carrying a move out.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use pointsman_core::store::{Result, StoreError};
use serde::{Deserialize, Serialize};

use super::{Cell, Movable, MoveError, Page, Place, Section, Tally};

/// So many pages are read ahead of the one that is being written.
const AHEAD: usize = 2;

/// How a move goes on, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many rows are to be copied, of which an earlier move has copied some.
    Copying {
        all: u64,
        before: u64,
    },
    Copied {
        section: Section,
        rows: u64,
    },
    /// So many rows are to be read on both sides.
    Comparing {
        all: u64,
    },
    Compared {
        section: Section,
        rows: u64,
    },
}

/// A section of both stores; none where a store of that kind has no such section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    pub section: Section,
    pub source: Option<Tally>,
    pub target: Option<Tally>,
}

/// What two stores hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub sections: Vec<Compared>,
}

impl Report {
    /// The sections in which the two differ.
    pub fn differences(&self) -> Vec<Section> {
        let differs =
            |both: &&Compared| both.source.zip(both.target).is_some_and(|(one, other)| one != other);
        self.sections.iter().filter(differs).map(|both| both.section).collect()
    }

    /// What the target has no place for.
    pub fn left_behind(&self) -> Vec<(Section, u64)> {
        let left = self.sections.iter().filter(|both| both.target.is_none());
        let rows = left.filter_map(|both| both.source.map(|tally| (both.section, tally.rows)));
        rows.filter(|(_, rows)| *rows > 0).collect()
    }

    /// How many rows both have.
    pub fn rows(&self) -> u64 {
        self.sections
            .iter()
            .filter(|both| both.target.is_some())
            .filter_map(|both| both.source)
            .map(|t| t.rows)
            .sum()
    }
}

/// How far a move has come, as the target keeps it.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// The realm of the source, and the checksum of its counters: what they tell changes with every node that joins.
    realm: i64,
    stamp: String,
    section: Section,
    place: Option<Place>,
    /// How many rows were copied.
    rows: u64,
}

/// Moves everything, or goes on with a move that was cut off, and compares both sides. The target is whole if the report
/// tells of no difference.
pub fn transfer(
    source: &mut dyn Movable,
    target: &mut dyn Movable,
    told: &mut dyn FnMut(Step),
) -> std::result::Result<Report, MoveError> {
    let mut note = begin(source, target)?;
    let all = count(source, target)?;
    told(Step::Copying { all, before: note.rows });
    copy(source, target, &mut note, told)?;
    let report = compare(source, target, told)?;
    if !source.is_unchanged().map_err(MoveError::Source)? {
        return Err(MoveError::Written);
    }
    if report.differences().is_empty() && !target.finish().map_err(MoveError::Target)? {
        return Err(MoveError::Disturbed);
    }
    Ok(report)
}

/// Compares two stores that are both whole.
pub fn verify(
    source: &mut dyn Movable,
    target: &mut dyn Movable,
    told: &mut dyn FnMut(Step),
) -> std::result::Result<Report, MoveError> {
    if source.note().map_err(MoveError::Source)?.is_some() {
        return Err(MoveError::Part);
    }
    if target.note().map_err(MoveError::Target)?.is_some() {
        return Err(MoveError::Unended);
    }
    compare(source, target, told)
}

/// How far it has come. A target without a note must be empty.
fn begin(source: &mut dyn Movable, target: &mut dyn Movable) -> std::result::Result<Note, MoveError> {
    if source.note().map_err(MoveError::Source)?.is_some() {
        return Err(MoveError::Part);
    }
    let (realm, stamp) = counters(source).map_err(MoveError::Source)?;
    if let Some(text) = target.note().map_err(MoveError::Target)? {
        let note: Note = serde_json::from_str(&text).map_err(|_| MoveError::Another)?;
        return match (note.realm == realm, note.stamp == stamp) {
            (true, true) => Ok(note),
            (true, false) => Err(MoveError::Changed),
            (false, _) => Err(MoveError::Another),
        };
    }
    let holds = holds(target).map_err(MoveError::Target)?;
    if holds.is_empty() {
        return Ok(Note { realm, stamp, section: Section::Counters, place: None, rows: 0 });
    }
    match counters(target).map_err(MoveError::Target)?.0 == realm {
        true => Err(MoveError::Done),
        false => Err(MoveError::NotEmpty(holds.join(", "))),
    }
}

/// The realm, and the checksum of all counters.
fn counters(store: &mut dyn Movable) -> Result<(i64, String)> {
    let mut tally = Tally::default();
    let page = store.read(Section::Counters, None)?;
    page.rows.iter().for_each(|row| tally.add(row));
    let realm = page.rows.first().and_then(|row| row.first()).and_then(Cell::number);
    Ok((realm.unwrap_or_default(), tally.checksum()))
}

/// What there is in a store, in words. Its counters are there always.
fn holds(store: &mut dyn Movable) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for section in Section::ALL.into_iter().filter(|section| *section != Section::Counters) {
        if let Some(rows @ 1..) = store.count(section)? {
            found.push(format!("{section} ({rows})"));
        }
    }
    if let waiting @ 1.. = store.waiting()? {
        found.push(format!("outbox ({waiting})"));
    }
    Ok(found)
}

/// How many rows there are to copy.
fn count(source: &mut dyn Movable, target: &mut dyn Movable) -> std::result::Result<u64, MoveError> {
    let mut all = 0;
    for section in shared(target)? {
        all += source.count(section).map_err(MoveError::Source)?.unwrap_or(0);
    }
    Ok(all)
}

/// The sections that the target has a place for.
fn shared(target: &mut dyn Movable) -> std::result::Result<Vec<Section>, MoveError> {
    let mut shared = Vec::new();
    for section in Section::ALL {
        if target.count(section).map_err(MoveError::Target)?.is_some() {
            shared.push(section);
        }
    }
    Ok(shared)
}

/// Copies what is missing. One thread reads ahead while this one writes.
fn copy(
    source: &mut dyn Movable,
    target: &mut dyn Movable,
    note: &mut Note,
    told: &mut dyn FnMut(Step),
) -> std::result::Result<(), MoveError> {
    let (first, place) = (note.section, note.place.clone());
    let sections = shared(target)?.into_iter().filter(|section| *section >= first).collect();
    thread::scope(|scope| {
        let (pages, read) = sync_channel(AHEAD);
        let reading = scope.spawn(move || read_on(source, sections, place, &pages));
        // Whoever cannot write lets go of what was read, and the reader stops.
        let written = write_on(target, read, note, told);
        let read = joined(reading).map_err(MoveError::Source);
        written.and(read)
    })
}

/// Reads the first section from a place on, and the others from their beginnings.
fn read_on(
    source: &mut dyn Movable,
    sections: Vec<Section>,
    mut place: Option<Place>,
    pages: &SyncSender<(Section, Page)>,
) -> Result<()> {
    for section in sections {
        let mut after = place.take();
        loop {
            let page = source.read(section, after.as_ref())?;
            if page.rows.is_empty() {
                break;
            }
            after = Some(page.place.clone());
            if pages.send((section, page)).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn write_on(
    target: &mut dyn Movable,
    read: Receiver<(Section, Page)>,
    note: &mut Note,
    told: &mut dyn FnMut(Step),
) -> std::result::Result<(), MoveError> {
    for (section, page) in read {
        let rows = page.rows.len() as u64;
        (note.section, note.place) = (section, Some(page.place));
        note.rows += rows;
        let text =
            serde_json::to_string(note).map_err(|e| MoveError::Target(StoreError::Damaged(e.to_string())))?;
        if !target.write(section, page.rows, &text).map_err(MoveError::Target)? {
            return Err(MoveError::Disturbed);
        }
        told(Step::Copied { section, rows });
    }
    Ok(())
}

/// Reads both stores whole, side by side.
pub fn compare(
    source: &mut dyn Movable,
    target: &mut dyn Movable,
    told: &mut dyn FnMut(Step),
) -> std::result::Result<Report, MoveError> {
    let all = 2 * count(source, target)?;
    told(Step::Comparing { all });
    thread::scope(|scope| {
        let (steps, heard) = channel();
        let also = steps.clone();
        let one = scope.spawn(move || tallies(source, &steps));
        let other = scope.spawn(move || tallies(target, &also));
        heard.into_iter().for_each(told);
        let one = joined(one).map_err(MoveError::Source)?;
        let other = joined(other).map_err(MoveError::Target)?;
        let both = Section::ALL.into_iter().zip(one.into_iter().zip(other));
        let sections = both.map(|(section, (source, target))| Compared { section, source, target });
        Ok(Report { sections: sections.filter(|both| both.source.or(both.target).is_some()).collect() })
    })
}

/// A tally for each section.
fn tallies(store: &mut dyn Movable, steps: &Sender<Step>) -> Result<Vec<Option<Tally>>> {
    let tally = |section| match store.count(section)? {
        Some(_) => tally(store, section, steps).map(Some),
        None => Ok(None),
    };
    Section::ALL.into_iter().map(tally).collect()
}

fn tally(store: &mut dyn Movable, section: Section, steps: &Sender<Step>) -> Result<Tally> {
    let (mut tally, mut after) = (Tally::default(), None);
    loop {
        let page = store.read(section, after.as_ref())?;
        if page.rows.is_empty() {
            return Ok(tally);
        }
        page.rows.iter().for_each(|row| tally.add(row));
        // Nobody may be watching any more.
        let _ = steps.send(Step::Compared { section, rows: page.rows.len() as u64 });
        after = Some(page.place);
    }
}

/// What a thread answered. If it panicked, so does this one.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

//! Of which objects a transaction writes anything, told in few bytes to others who know them: what an object is like
//! now, if it was written itself, and which of its lanes are empty now. The rest of what they know of it they look up
//! again.

use std::cell::RefCell;
use std::collections::BTreeMap;

use pointsman_core::EventId;
use pointsman_store::object_of_lane;
use pointsman_store::row::{HandlerId, Object};

use super::seen::Seen;

/// What would take more bytes is not told: a row must fit into a page.
const MOST: usize = 6_000;

/// Numbers of objects, and of lanes that belong to none.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Whether the object itself was written. Nothing, if nobody listens, or if something was written and nobody knows
    /// to which object it belongs.
    numbers: RefCell<Option<BTreeMap<i64, bool>>>,
}

/// What is told of an object, or of a lane that belongs to none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) number: i64,
    pub(crate) object: Became,
    /// Of these handlers, nobody stands in its lane.
    pub(crate) empty: Vec<HandlerId>,
}

/// What has become of an object itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Became {
    /// It was not written.
    #[default]
    AsBefore,
    Now(Object),
    /// It was written, but not told.
    Otherwise,
}

impl Became {
    fn code(&self) -> u64 {
        match self {
            Self::AsBefore => 0,
            Self::Now(_) => 1,
            Self::Otherwise => 2,
        }
    }
}

impl Touched {
    /// A transaction begins, of which others are told if there are any.
    pub(crate) fn begin(&self, in_company: bool) {
        self.numbers.replace(in_company.then(BTreeMap::new));
    }

    pub(crate) fn object(&self, number: i64) {
        if let Some(numbers) = &mut *self.numbers.borrow_mut() {
            numbers.insert(number, true);
        }
    }

    pub(crate) fn lane(&self, lane: i64) {
        if let Some(numbers) = &mut *self.numbers.borrow_mut() {
            numbers.entry(object_of_lane(lane).unwrap_or(lane)).or_insert(false);
        }
    }

    /// A task was written of which it is not known in which lane it stands.
    pub(crate) fn anything(&self) {
        self.numbers.replace(None);
    }

    /// As it is told to others; nothing if that is too much. What is known of the objects is in `seen`.
    pub(crate) fn told(&self, seen: &Seen) -> Option<Vec<u8>> {
        let numbers = self.numbers.take()?;
        let of = |(number, written): (i64, bool)| Heard {
            number,
            object: match seen.numbered(number) {
                _ if !written => Became::AsBefore,
                Some(object) => Became::Now(object.clone()),
                None => Became::Otherwise,
            },
            empty: seen.lanes.empty(number),
        };
        let mut bytes = Bytes { put: vec![FORMAT], ..Bytes::default() };
        // There must be room for a word about each of those that follow.
        let mut left = numbers.len();
        for heard in numbers.into_iter().map(of) {
            left -= 1;
            let room = MOST.saturating_sub(bytes.put.len() + left * MOST_NUMBER);
            bytes.tell(&heard, room);
        }
        (bytes.put.len() <= MOST).then_some(bytes.put)
    }
}

/// So many bytes most differences between numbers need, and what is said beside.
const MOST_NUMBER: usize = 4;

/// What is told begins with this, so that it can be told otherwise one day.
const FORMAT: u8 = 1;

/// What is told, as bytes. Numbers are told as differences, seven bits a byte, the lowest first.
#[derive(Default)]
struct Bytes {
    put: Vec<u8>,
    number: i64,
    last: i64,
}

impl Bytes {
    /// Tells of one; only that it was touched, if there is no room for more.
    fn tell(&mut self, heard: &Heard, room: usize) {
        self.put(heard.number.wrapping_sub(self.number) as u64);
        self.number = heard.number;
        let (before, last) = (self.put.len(), self.last);
        self.say(heard);
        if self.put.len() - before > room {
            self.put.truncate(before);
            self.last = last;
            self.put(
                if heard.object == Became::AsBefore { Became::AsBefore } else { Became::Otherwise }.code(),
            );
        }
    }

    fn say(&mut self, heard: &Heard) {
        self.put((heard.empty.len() as u64) << 2 | heard.object.code());
        if let Became::Now(object) = &heard.object {
            let last = object.last.as_i64();
            self.put_signed(last.wrapping_sub(self.last));
            self.last = last;
            self.put(object.sent.len() as u64);
            for (handler, id) in &object.sent {
                self.put_signed(*handler);
                self.put_signed(id.as_i64().wrapping_sub(last));
            }
        }
        heard.empty.iter().for_each(|handler| self.put_signed(*handler));
    }

    fn put(&mut self, mut rest: u64) {
        while rest >= 0x80 {
            self.put.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.put.push(rest as u8);
    }

    fn put_signed(&mut self, number: i64) {
        self.put(((number << 1) ^ (number >> 63)) as u64);
    }
}

/// What was told; nothing if that cannot be read.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<Heard>> {
    let (mut reader, mut heard) = (Reader(bytes.strip_prefix(&[FORMAT])?), Vec::new());
    let (mut number, mut last) = (0_i64, 0_i64);
    while !reader.0.is_empty() {
        number = number.wrapping_add(reader.number()? as i64);
        let said = reader.number()?;
        let object = match said & 3 {
            0 => Became::AsBefore,
            1 => {
                last = last.wrapping_add(reader.signed()?);
                let sent = reader.many(|reader| {
                    Some((reader.signed()?, EventId::from_i64(last.wrapping_add(reader.signed()?))))
                })?;
                Became::Now(Object { number, last: EventId::from_i64(last), sent })
            }
            2 => Became::Otherwise,
            _ => return None,
        };
        let empty = (0..said >> 2).map(|_| reader.signed()).collect::<Option<_>>()?;
        heard.push(Heard { number, object, empty });
    }
    Some(heard)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.number()?).map(|_| one(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::Tenant;
    use pointsman_store::lane_number;

    use super::*;

    fn object(number: i64, last: i64) -> Object {
        let id = EventId::from_i64;
        Object { number, last: id(last), sent: vec![(3, id(last)), (70_000, id(last - 5))] }
    }

    fn seen(objects: impl IntoIterator<Item = Object>) -> Seen {
        let mut seen = Seen::default();
        for object in objects {
            let name = (Tenant::default(), format!("object:{}", object.number));
            seen.learn(name, Some(object));
        }
        seen
    }

    fn numbers(heard: &[Heard]) -> Vec<i64> {
        heard.iter().map(|heard| heard.number).collect()
    }

    #[test]
    fn what_is_told_is_read_again() {
        let touched = Touched::default();
        touched.begin(true);
        let lanes = [i64::MIN + 7, -3, (5 << 20) + 1, (5 << 20) + 2, (70_000 << 20) + 9];
        lanes.into_iter().for_each(|lane| touched.lane(lane));
        [i64::MAX, 1, 5].into_iter().for_each(|number| touched.object(number));
        let mut seen = seen([object(1, i64::MAX), object(5, 8), object(70_000, 9)]);
        seen.lanes.fetched(lane_number(5, 2), vec![], 2);
        let told = touched.told(&seen).unwrap();
        let heard = read(&told).unwrap();
        assert_eq!(numbers(&heard), [i64::MIN + 7, -3, 1, 5, 70_000, i64::MAX]);
        let of = |index: usize| heard[index].clone();
        assert_eq!(of(2), Heard { number: 1, object: Became::Now(object(1, i64::MAX)), empty: vec![] });
        assert_eq!(of(3), Heard { number: 5, object: Became::Now(object(5, 8)), empty: vec![2] });
        assert_eq!(of(4), Heard { number: 70_000, ..Heard::default() }, "it was not written itself");
        let unknown = Heard { number: i64::MAX, object: Became::Otherwise, empty: vec![] };
        assert_eq!(of(5), unknown, "nothing is known of it");
        assert!(told.len() < 80, "{} bytes", told.len());
        assert_eq!(read(&told[..told.len() - 1]), None, "it is cut off");
        assert_eq!(read(&[&[FORMAT], &[0xFF; 40][..]].concat()), None);
        assert_eq!(read(&told[1..]), None, "that is another format");
    }

    #[test]
    fn of_many_not_all_are_told_whole() {
        let touched = Touched::default();
        touched.begin(true);
        (1..=1_000).for_each(|number| touched.object(number));
        let told = touched.told(&seen((1..=1_000).map(|number| object(number, number * 1_000)))).unwrap();
        let heard = read(&told).unwrap();
        assert!(told.len() <= MOST && heard.len() == 1_000);
        let mut whole = 0;
        for (heard, number) in heard.into_iter().zip(1..) {
            if heard.object != Became::Otherwise {
                assert_eq!(heard.object, Became::Now(object(number, number * 1_000)));
                whole += 1;
            }
        }
        assert!((200..900).contains(&whole), "{whole}");
    }

    #[test]
    fn too_much_and_what_nobody_knows_is_not_told() {
        let (touched, nothing) = (Touched::default(), Seen::default());
        touched.begin(true);
        (0..2_000).for_each(|number| touched.object(number * 1_000_000));
        assert_eq!(touched.told(&nothing), None);
        touched.begin(true);
        assert_eq!(touched.told(&nothing).as_deref().and_then(read), Some(vec![]));
        touched.begin(true);
        touched.anything();
        touched.object(1);
        assert_eq!(touched.told(&nothing), None);
        touched.begin(false);
        touched.object(1);
        assert_eq!(touched.told(&nothing), None, "nobody is there");
    }
}

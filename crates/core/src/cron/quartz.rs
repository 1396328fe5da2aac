//! The day fields of Quartz: `?`, `L`, `L-3`, `LW`, `15W`, `6#3`, `6L`; weekdays from 1, Sunday.
//!
//! At most one of the two fields is restricted, the other holds `?` or `*`. That is Quartz's own rule, and it
//! spares the reader the question whether two restrictions add up or narrow down. Marks may stand in lists.

use super::Dialect::Quartz;
use super::bits::Bits;
use super::days::{Days, Join, MonthDays, MonthMark, WeekDays, WeekMark};
use super::error::BadExpression;
use super::field::{self, Field, Values, shown};
use super::text::Part;

pub(super) fn days(of_month: Part<'_>, of_week: Part<'_>) -> Result<Days, BadExpression> {
    let month = month_days(of_month)?;
    let week = week_days(of_week)?;
    if of_month.text == "?" && of_week.text == "?" {
        let problem = "`?` stands in one of the two day fields; write `*` in the other";
        return Err(Field::DayOfWeek.bad(of_week.column, problem));
    }
    if !month.is_every() && !week.is_every() {
        let problem =
            "Quartz takes a day of month or a day of week, not both; write `?` in one of the fields";
        return Err(Field::DayOfWeek.bad(of_week.column, problem));
    }
    Ok(Days { of_month: month, of_week: week, join: Join::Both })
}

fn nothing() -> Values {
    Values { set: Bits::default(), named_singly: true }
}

fn month_days(part: Part<'_>) -> Result<MonthDays, BadExpression> {
    let star = part.text == "?" || part.text.starts_with('*');
    if part.text == "?" {
        return Ok(MonthDays { listed: Bits::span(1, 31), marked: [].into(), star });
    }
    let (mut listed, mut marked) = (nothing(), Vec::new());
    for item in part.list() {
        match month_mark(item)? {
            Some(mark) => marked.push(mark),
            None => field::add(&mut listed, Field::DayOfMonth, item, Quartz)?,
        }
    }
    Ok(MonthDays { listed: listed.set, marked: marked.into(), star })
}

fn month_mark(item: Part<'_>) -> Result<Option<MonthMark>, BadExpression> {
    let (body, weekday) = match item.strip_suffix('W') {
        Some(body) => (body, true),
        None => (item, false),
    };
    if let Some(rest) = body.strip_prefix('L') {
        let before = if rest.text.is_empty() { 0 } else { days_before_last(rest)? };
        return Ok(Some(if weekday {
            MonthMark::LastWeekday { before }
        } else {
            MonthMark::Last { before }
        }));
    }
    if !weekday {
        return Ok(None);
    }
    let day = Field::DayOfMonth.value(body, Quartz)? as u8;
    Ok(Some(MonthMark::NearestWeekday { day }))
}

/// The `-3` of `L-3`.
fn days_before_last(rest: Part<'_>) -> Result<u8, BadExpression> {
    let days = rest.strip_prefix('-').and_then(Part::number).filter(|days| *days <= 30);
    days.map(|days| days as u8).ok_or_else(|| {
        let problem = format!(
            "after `L` comes nothing, `W` or the days before the last, as in `L-3`, at most 30; got {}",
            shown(rest)
        );
        Field::DayOfMonth.bad(rest.column, problem)
    })
}

fn week_days(part: Part<'_>) -> Result<WeekDays, BadExpression> {
    let star = part.text == "?" || part.text.starts_with('*');
    if part.text == "?" {
        return Ok(WeekDays { listed: Bits::span(0, 6), marked: [].into(), star });
    }
    let (mut listed, mut marked) = (nothing(), Vec::new());
    for item in part.list() {
        match week_mark(item)? {
            Some(mark) => marked.push(mark),
            // Alone, `L` is the last day of the week.
            None if item.is("L") => listed.set.insert(7),
            None => field::add(&mut listed, Field::DayOfWeek, item, Quartz)?,
        }
    }
    let listed = Bits::of(listed.set.iter().map(|day| day - 1));
    Ok(WeekDays { listed, marked: marked.into(), star })
}

fn week_mark(item: Part<'_>) -> Result<Option<WeekMark>, BadExpression> {
    if let Some((day, nth)) = item.split_once('#') {
        let weekday = weekday(day)?;
        let nth = nth.number().filter(|nth| (1..=5).contains(nth)).ok_or_else(|| {
            let problem =
                format!("after `#` comes 1 to 5, as in `6#3` for the third Friday; got {}", shown(nth));
            Field::DayOfWeek.bad(nth.column, problem)
        })?;
        return Ok(Some(WeekMark::Nth { weekday, nth: nth as u8 }));
    }
    match item.strip_suffix('L') {
        Some(day) if !day.text.is_empty() => Ok(Some(WeekMark::Last { weekday: weekday(day)? })),
        _ => Ok(None),
    }
}

fn weekday(part: Part<'_>) -> Result<u8, BadExpression> {
    Ok(Field::DayOfWeek.value(part, Quartz)? as u8 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(of_month: &str, of_week: &str) -> Result<Days, BadExpression> {
        days(Part::whole(of_month), Part { text: of_week, column: 20 })
    }

    #[test]
    fn marks() {
        let month = |text| read(text, "?").unwrap().of_month.marked.to_vec();
        assert_eq!(month("L"), [MonthMark::Last { before: 0 }]);
        assert_eq!(month("l-3"), [MonthMark::Last { before: 3 }]);
        assert_eq!(month("LW"), [MonthMark::LastWeekday { before: 0 }]);
        assert_eq!(month("L-3W"), [MonthMark::LastWeekday { before: 3 }]);
        assert_eq!(month("15w"), [MonthMark::NearestWeekday { day: 15 }]);
        let week = |text| read("?", text).unwrap().of_week.marked.to_vec();
        assert_eq!(week("6#3"), [WeekMark::Nth { weekday: 5, nth: 3 }]);
        assert_eq!(week("FRI#3"), [WeekMark::Nth { weekday: 5, nth: 3 }]);
        assert_eq!(week("6L"), [WeekMark::Last { weekday: 5 }]);
        assert_eq!(week("friL"), [WeekMark::Last { weekday: 5 }]);
        assert_eq!(read("?", "L").unwrap().of_week.listed, Bits::of([6]));
        let both = read("1,15W,L", "?").unwrap().of_month;
        assert_eq!((both.listed, both.marked.len()), (Bits::of([1]), 2));
    }

    #[test]
    fn bad_marks_are_pointed_at() {
        let bad = |of_month, of_week| {
            let error = read(of_month, of_week).unwrap_err();
            (error.field.unwrap(), error.column)
        };
        assert_eq!(bad("32W", "?"), (Field::DayOfMonth, 1));
        assert_eq!(bad("1,W", "?"), (Field::DayOfMonth, 3));
        assert_eq!(bad("L-31", "?"), (Field::DayOfMonth, 2));
        assert_eq!(bad("LX", "?"), (Field::DayOfMonth, 2));
        assert_eq!(bad("?", "6#6"), (Field::DayOfWeek, 22));
        assert_eq!(bad("?", "8L"), (Field::DayOfWeek, 20));
        assert_eq!(bad("?", "?"), (Field::DayOfWeek, 20));
        assert_eq!(bad("13", "FRI"), (Field::DayOfWeek, 20));
        assert_eq!(bad("1,?", "*"), (Field::DayOfMonth, 3));
    }
}

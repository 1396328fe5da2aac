//! The day fields of a crontab: weekdays from 0, Sunday, which is also 7.
//!
//! When both fields are restricted, a day need satisfy only one of them. A field counts as restricted unless it
//! begins with `*`, so `*/2` narrows the other field down: that is how cron has always read it.

use super::Dialect::Vixie;
use super::days::{Days, Join, MonthDays, WeekDays};
use super::error::BadExpression;
use super::field::{self, Field};
use super::text::Part;

pub(super) fn days(of_month: Part<'_>, of_week: Part<'_>) -> Result<Days, BadExpression> {
    refuse_marks(Field::DayOfMonth, of_month, &['?', '#', 'L', 'l', 'W', 'w'])?;
    refuse_marks(Field::DayOfWeek, of_week, &['?', '#', 'L', 'l'])?;
    let month = field::values(Field::DayOfMonth, of_month, Vixie)?.set;
    let week = field::values(Field::DayOfWeek, of_week, Vixie)?.set;
    let (month_star, week_star) = (of_month.text.starts_with('*'), of_week.text.starts_with('*'));
    let join = if month_star || week_star { Join::Both } else { Join::Either };
    Ok(Days {
        of_month: MonthDays { listed: month, marked: [].into(), star: month_star },
        of_week: WeekDays { listed: week, marked: [].into(), star: week_star },
        join,
    })
}

/// No weekday has an L in its name, so the marks cannot be mistaken for one.
fn refuse_marks(field: Field, part: Part<'_>, marks: &[char]) -> Result<(), BadExpression> {
    let Some((at, mark)) = part.text.chars().enumerate().find(|(_, c)| marks.contains(c)) else {
        return Ok(());
    };
    let problem = if mark == '?' {
        "`?` belongs to Quartz expressions; write `*` here".to_owned()
    } else {
        format!("`{mark}` belongs to Quartz expressions; put the second first, or set the dialect to quartz")
    };
    Err(field.bad(part.column + at, problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::bits::Bits;

    fn read(of_month: &str, of_week: &str) -> Result<Days, BadExpression> {
        days(Part::whole(of_month), Part { text: of_week, column: 9 })
    }

    #[test]
    fn either_field_is_enough_only_when_both_are_restricted() {
        assert_eq!(read("13", "5").unwrap().join, Join::Either);
        assert_eq!(read("*", "5").unwrap().join, Join::Both);
        assert_eq!(read("*/2", "5").unwrap().join, Join::Both);
        assert_eq!(read("13", "*/2").unwrap().join, Join::Both);
        assert_eq!(read("13", "fri-sun").unwrap().of_week.listed, Bits::of([0, 5, 6]));
    }

    #[test]
    fn marks_of_quartz_are_refused_with_a_hint() {
        let error = read("L", "*").unwrap_err();
        assert_eq!((error.field, error.column), (Some(Field::DayOfMonth), 1));
        assert!(error.problem.contains("dialect"), "{error}");
        assert_eq!(read("*", "FRI#2").unwrap_err().column, 12);
        assert!(read("?", "*").unwrap_err().problem.contains("write `*`"));
        assert!(read("*", "WED").is_ok());
    }
}

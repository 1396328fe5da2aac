//! Parses the day fields of Quartz: `?`, `L`, `L-3`, `LW`, `15W`, `6#3`, `6L`; weekdays from 1, Sunday.
//!
//! At most one of the two fields is restricted, the other is `?` or `*`. That is Quartz's own rule, and it avoids the
//! question whether a day must match both restrictions or either. Special days may be items of lists.

use super::Dialect::Quartz;
use super::bad_expression::BadExpression;
use super::days::{DayFieldMatch, DayFields, MonthDayField, SpecialMonthDay, SpecialWeekday, WeekdayField};
use super::field::{self, CronField, FieldValues, quote_shortened};
use super::number_set::NumberSet;
use super::text_span::TextSpan;

/// Parses the two day fields of an expression.
pub(super) fn parse_days(
    month_field: TextSpan<'_>,
    week_field: TextSpan<'_>,
) -> Result<DayFields, BadExpression> {
    let month = parse_month_days(month_field)?;
    let week = parse_weekdays(week_field)?;
    if month_field.text == "?" && week_field.text == "?" {
        let problem = "`?` is allowed in only one of the two day fields; write `*` in the other";
        return Err(CronField::DayOfWeek.error(week_field.column, problem));
    }
    if !month.is_unrestricted() && !week.is_unrestricted() {
        let problem =
            "Quartz takes a day of month or a day of week, not both; write `?` in one of the fields";
        return Err(CronField::DayOfWeek.error(week_field.column, problem));
    }
    Ok(DayFields { day_of_month: month, day_of_week: week, day_match: DayFieldMatch::Both })
}

fn empty_field_values() -> FieldValues {
    FieldValues { set: NumberSet::default(), each_value_listed_singly: true }
}

fn parse_month_days(part: TextSpan<'_>) -> Result<MonthDayField, BadExpression> {
    let is_star = part.text == "?" || part.text.starts_with('*');
    if part.text == "?" {
        return Ok(MonthDayField {
            listed_days: NumberSet::from_range(1, 31),
            special_days: [].into(),
            is_star,
        });
    }
    let (mut listed_days, mut special_days) = (empty_field_values(), Vec::new());
    for item in part.split_commas() {
        match parse_special_month_day(item)? {
            Some(special_day) => special_days.push(special_day),
            None => field::parse_list_item_into(&mut listed_days, CronField::DayOfMonth, item, Quartz)?,
        }
    }
    Ok(MonthDayField { listed_days: listed_days.set, special_days: special_days.into(), is_star })
}

fn parse_special_month_day(item: TextSpan<'_>) -> Result<Option<SpecialMonthDay>, BadExpression> {
    let (body, is_working_day) = match item.strip_suffix('W') {
        Some(body) => (body, true),
        None => (item, false),
    };
    if let Some(rest) = body.strip_prefix('L') {
        let days_before = if rest.text.is_empty() { 0 } else { parse_days_before_last(rest)? };
        return Ok(Some(if is_working_day {
            SpecialMonthDay::LastWorkingDay { days_before }
        } else {
            SpecialMonthDay::Last { days_before }
        }));
    }
    if !is_working_day {
        return Ok(None);
    }
    let day = CronField::DayOfMonth.parse_value(body, Quartz)? as u8;
    Ok(Some(SpecialMonthDay::NearestWorkingDay { day }))
}

/// Parses the `-3` of `L-3`.
fn parse_days_before_last(rest: TextSpan<'_>) -> Result<u8, BadExpression> {
    let days = rest.strip_prefix('-').and_then(TextSpan::parse_number).filter(|days| *days <= 30);
    days.map(|days| days as u8).ok_or_else(|| {
        let problem = format!(
            "after `L` comes nothing, `W` or the days before the last, as in `L-3`, at most 30; got {}",
            quote_shortened(rest)
        );
        CronField::DayOfMonth.error(rest.column, problem)
    })
}

fn parse_weekdays(part: TextSpan<'_>) -> Result<WeekdayField, BadExpression> {
    let is_star = part.text == "?" || part.text.starts_with('*');
    if part.text == "?" {
        return Ok(WeekdayField {
            listed_days: NumberSet::from_range(0, 6),
            special_days: [].into(),
            is_star,
        });
    }
    let (mut listed_days, mut special_days) = (empty_field_values(), Vec::new());
    for item in part.split_commas() {
        match parse_special_weekday(item)? {
            Some(special_day) => special_days.push(special_day),
            // On its own, `L` is the last day of the week.
            None if item.eq_ignore_case("L") => listed_days.set.insert(7),
            None => field::parse_list_item_into(&mut listed_days, CronField::DayOfWeek, item, Quartz)?,
        }
    }
    let listed_days = NumberSet::from_members(listed_days.set.iter().map(|day| day - 1));
    Ok(WeekdayField { listed_days, special_days: special_days.into(), is_star })
}

fn parse_special_weekday(item: TextSpan<'_>) -> Result<Option<SpecialWeekday>, BadExpression> {
    if let Some((day, nth)) = item.split_once('#') {
        let weekday = parse_weekday(day)?;
        let nth = nth.parse_number().filter(|nth| (1..=5).contains(nth)).ok_or_else(|| {
            let problem = format!(
                "after `#` comes 1 to 5, as in `6#3` for the third Friday; got {}",
                quote_shortened(nth)
            );
            CronField::DayOfWeek.error(nth.column, problem)
        })?;
        return Ok(Some(SpecialWeekday::Nth { weekday, nth: nth as u8 }));
    }
    match item.strip_suffix('L') {
        Some(day) if !day.text.is_empty() => Ok(Some(SpecialWeekday::Last { weekday: parse_weekday(day)? })),
        _ => Ok(None),
    }
}

fn parse_weekday(part: TextSpan<'_>) -> Result<u8, BadExpression> {
    Ok(CronField::DayOfWeek.parse_value(part, Quartz)? as u8 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_days_from_text(month_field: &str, week_field: &str) -> Result<DayFields, BadExpression> {
        parse_days(TextSpan::from_text(month_field), TextSpan { text: week_field, column: 20 })
    }

    #[test]
    fn special_days_are_parsed() {
        let month = |text| parse_days_from_text(text, "?").unwrap().day_of_month.special_days.to_vec();
        assert_eq!(month("L"), [SpecialMonthDay::Last { days_before: 0 }]);
        assert_eq!(month("l-3"), [SpecialMonthDay::Last { days_before: 3 }]);
        assert_eq!(month("LW"), [SpecialMonthDay::LastWorkingDay { days_before: 0 }]);
        assert_eq!(month("L-3W"), [SpecialMonthDay::LastWorkingDay { days_before: 3 }]);
        assert_eq!(month("15w"), [SpecialMonthDay::NearestWorkingDay { day: 15 }]);
        let week = |text| parse_days_from_text("?", text).unwrap().day_of_week.special_days.to_vec();
        assert_eq!(week("6#3"), [SpecialWeekday::Nth { weekday: 5, nth: 3 }]);
        assert_eq!(week("FRI#3"), [SpecialWeekday::Nth { weekday: 5, nth: 3 }]);
        assert_eq!(week("6L"), [SpecialWeekday::Last { weekday: 5 }]);
        assert_eq!(week("friL"), [SpecialWeekday::Last { weekday: 5 }]);
        assert_eq!(
            parse_days_from_text("?", "L").unwrap().day_of_week.listed_days,
            NumberSet::from_members([6])
        );
        let both = parse_days_from_text("1,15W,L", "?").unwrap().day_of_month;
        assert_eq!((both.listed_days, both.special_days.len()), (NumberSet::from_members([1]), 2));
    }

    #[test]
    fn errors_in_special_days_have_their_column() {
        let bad = |month_field, week_field| {
            let error = parse_days_from_text(month_field, week_field).unwrap_err();
            (error.field.unwrap(), error.column)
        };
        assert_eq!(bad("32W", "?"), (CronField::DayOfMonth, 1));
        assert_eq!(bad("1,W", "?"), (CronField::DayOfMonth, 3));
        assert_eq!(bad("L-31", "?"), (CronField::DayOfMonth, 2));
        assert_eq!(bad("LX", "?"), (CronField::DayOfMonth, 2));
        assert_eq!(bad("?", "6#6"), (CronField::DayOfWeek, 22));
        assert_eq!(bad("?", "8L"), (CronField::DayOfWeek, 20));
        assert_eq!(bad("?", "?"), (CronField::DayOfWeek, 20));
        assert_eq!(bad("13", "FRI"), (CronField::DayOfWeek, 20));
        assert_eq!(bad("1,?", "*"), (CronField::DayOfMonth, 3));
    }
}

//! The lines that `watch` shows: time, what, who, about which object, and the rest.

use pointsman_api::{EventSeq, TaskChangeBody};

use crate::happening::Happening;
use crate::output::{Paint, clock, short};

/// A line, and the day of what it tells; none where it tells of no moment.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) day: Option<String>,
    pub(super) text: String,
}

/// The widths of the columns after the time.
const WHAT: usize = 9;
const WHO: usize = 24;
const KEY: usize = 20;

/// The longest error that is shown.
const REST: usize = 160;

pub(super) fn newest_id(seq: &EventSeq) -> u64 {
    match seq {
        EventSeq::NonEmpty { event_id, .. }
        | EventSeq::Empty { event_id, .. }
        | EventSeq::Torn { event_id } => *event_id,
    }
}

pub(super) fn event(paint: Paint, data: &str) -> Option<Line> {
    let event = Happening::read(data)?;
    let time = event.id.timestamp().to_string();
    let what = pad(event.of.word(), WHAT);
    let who = paint.name(&pad(&event.kind, WHO)).into_owned();
    let blank = if event.words.is_empty() || event.task.is_none() { "" } else { "  " };
    let task = event.task.as_deref().map(|task| short(task, usize::MAX)).unwrap_or_default();
    let rest = format!("{}  {}{blank}{}", event.id, event.words, paint.dim(&task));
    Some(columns(paint, &time, &paint.bold(&what), &who, event.key.as_deref(), &rest))
}

pub(super) fn task(paint: Paint, data: &str) -> Option<Line> {
    let change: TaskChangeBody = serde_json::from_str(data).ok()?;
    let what = pad(&change.status, WHAT);
    let what = paint.status(&change.status, &what);
    let mut rest = match change.attempt {
        0 => String::new(),
        attempt => format!("attempt {attempt}"),
    };
    if let Some(error) = &change.error {
        rest.push_str(&format!(": {}", short(error, REST)));
    }
    // Both are written alike, so that they compare as texts.
    if change.delay_until > change.time {
        let comma = if rest.is_empty() { "" } else { "; " };
        rest.push_str(&format!("{comma}not before {}", clock(&change.delay_until)));
    }
    let blank = if rest.is_empty() { "" } else { "  " };
    rest.push_str(&format!("{blank}{}", paint.dim(&change.id)));
    Some(columns(paint, &change.time, &what, &pad(&change.handler, WHO), change.key.as_deref(), &rest))
}

pub(super) fn torn(paint: Paint, data: &str) -> Option<Line> {
    let seq: EventSeq = serde_json::from_str(data).ok()?;
    let text = format!(
        "TORN: events were forgotten before they could be shown, or this journal never gave out the id to go on \
         after; the newest is {}",
        newest_id(&seq)
    );
    Some(Line { day: None, text: paint.bad(&text).into_owned() })
}

fn columns(paint: Paint, time: &str, what: &str, who: &str, key: Option<&str>, rest: &str) -> Line {
    let key = pad(key.unwrap_or("-"), KEY);
    let text = format!("{}  {what}  {who}  {key}  {rest}", paint.dim(clock(time)));
    Line { day: time.get(..10).map(Into::into), text: text.trim_end().into() }
}

/// A text in its column. One that is too long takes what it needs: names are not cut.
fn pad(text: &str, width: usize) -> String {
    format!("{:<width$}", short(text, usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Color;

    const EVENT: &str = r#"{"eventId":1478257655827000,"TYPE":"record.published","key":"record:1","prev":null,"value":{"title":"Hello"},"context":{},"tenant":"default"}"#;
    const TASK: &str = r#"{"id":"index_record.published_x","handler":"index","tenant":"default","key":"record:1","collection":"record.published","event_id":1478257655827000,"status":"SCHEDULED","state":"new","attempt":1,"error":"refused","delay_until":"2016-11-04T11:07:40.000000Z","time":"2016-11-04T11:07:36.000000Z"}"#;

    #[test]
    fn lines_are_aligned_and_say_what_matters() {
        let paint = Paint::new(Color::Never);
        let (event, task) = (event(paint, EVENT).unwrap(), task(paint, TASK).unwrap());
        assert_eq!((event.day.as_deref(), event.day == task.day), (Some("2016-11-04"), true));
        let (event, task) = (event.text, task.text);
        assert_eq!(
            event,
            "11:07:35.827  event      record.published          record:1              1478257655827000  {\"title\":\"Hello\"}"
        );
        assert_eq!(
            task,
            "11:07:36.000  SCHEDULED  index                     record:1              attempt 1: refused; not before 11:07:40.000  index_record.published_x"
        );
        assert_eq!(event.find("record:1"), task.find("record:1"));
    }

    #[test]
    fn the_engines_own_events_stand_in_the_same_columns() {
        let paint = Paint::new(Color::Never);
        let order = r#"{"eventId":1478257655827000,"key":"/publish/article,117","TYPE":"OrderNodeChanged","fromNodeId":"render","nodeId":"deploy"}"#;
        assert_eq!(
            event(paint, order).unwrap().text,
            "11:07:35.827  order      OrderNodeChanged          /publish/article,117  1478257655827000  render → deploy"
        );
        let task = r#"{"eventId":1478257655827000,"key":{"jobPath":"/index","taskId":"index_x_1"},"TYPE":"TaskEnded","returnCode":3}"#;
        assert_eq!(
            event(paint, task).unwrap().text,
            "11:07:35.827  task       TaskEnded                 /index                1478257655827000  return code 3  index_x_1"
        );
        let state = r#"{"eventId":1478257655827000,"TYPE":"SchedulerClosed"}"#;
        assert!(event(paint, state).unwrap().text.ends_with("  -                     1478257655827000"));
    }

    #[test]
    fn a_time_that_has_come_is_not_told() {
        let due = TASK.replace("11:07:40", "11:07:36");
        let line = task(Paint::new(Color::Never), &due).unwrap().text;
        assert!(line.ends_with("attempt 1: refused  index_record.published_x"), "{line}");
    }

    #[test]
    fn a_tear_is_told_plainly() {
        let told = torn(Paint::new(Color::Never), r#"{"TYPE":"Torn","eventId":9}"#).unwrap().text;
        assert!(told.starts_with("TORN: ") && told.ends_with("the newest is 9"), "{told}");
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        assert_eq!(event(Paint::new(Color::Never), "{}"), None);
        assert_eq!(task(Paint::new(Color::Never), "nonsense"), None);
    }
}

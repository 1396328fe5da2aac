//! The lines that `watch` shows: time, what, who, about which object, and the rest.

use pointsman_api::{EventSeq, TaskChangeBody};

use crate::happening::Happening;
use crate::output::{Paint, clean, clock, pad as padded, short, width as measured};

/// A line, and the day of what it tells; none where it tells of no moment.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) day: Option<String>,
    pub(super) text: String,
}

/// The width of the second column, which says what a line is about.
const WHAT: usize = 9;
/// The widths that the next two begin with on a narrow terminal and elsewhere, and the most that they are widened to.
/// What is longer still takes what it needs in its own line.
const WHO: (usize, usize, usize) = (16, 24, 32);
const KEY: (usize, usize, usize) = (12, 20, 48);
/// What counts as narrow: a line with an id and nothing else fits no more.
const NARROW: usize = 100;

/// The lines so far, as far as the next one is to fit them.
pub(super) struct Lines {
    paint: Paint,
    who: usize,
    key: usize,
    /// The order of the line above. People need not read it again; what reads a pipe wants every line whole.
    order: Option<String>,
    brief: bool,
}

/// The longest error that is shown.
const REST: usize = 160;

pub(super) fn newest_id(seq: &EventSeq) -> u64 {
    match seq {
        EventSeq::NonEmpty { event_id, .. }
        | EventSeq::Empty { event_id, .. }
        | EventSeq::Torn { event_id } => *event_id,
    }
}

impl Lines {
    /// For a terminal of so many columns, or for a pipe. Only a terminal is spared an order's name where the line above
    /// has it.
    pub(super) fn new(paint: Paint, columns: Option<usize>) -> Self {
        let narrow = columns.is_some_and(|columns| columns < NARROW);
        let (who, key) = if narrow { (WHO.0, KEY.0) } else { (WHO.1, KEY.1) };
        Self { paint, who, key, order: None, brief: columns.is_some() }
    }

    pub(super) fn event(&mut self, data: &str) -> Option<Line> {
        let event = Happening::read(data)?;
        let paint = self.paint;
        let time = event.id.timestamp().to_string();
        let blank = if event.words.is_empty() || event.task.is_none() { "" } else { "  " };
        let task = event.task.as_deref().map(clean).unwrap_or_default();
        let rest = format!("{}  {}{blank}{}", event.id, event.words, paint.dim(&task));
        let order = event.order();
        let key = order.or(event.key.as_deref());
        let what = paint.bold(&pad(event.of.word(), WHAT)).into_owned();
        Some(self.columns(&time, &what, (&event.kind, true), key, order, &rest))
    }

    pub(super) fn task(&mut self, data: &str) -> Option<Line> {
        let change: TaskChangeBody = serde_json::from_str(data).ok()?;
        let paint = self.paint;
        let what = paint.status(&change.status, &pad(&change.status, WHAT)).into_owned();
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
        let key = change.key.as_deref();
        let order = order_of(&change);
        Some(self.columns(&change.time, &what, (&change.handler, false), key, order, &rest))
    }

    fn columns(
        &mut self,
        time: &str,
        what: &str,
        (who, is_type): (&str, bool),
        key: Option<&str>,
        order: Option<&str>,
        rest: &str,
    ) -> Line {
        self.who = widened(self.who, who, WHO.2);
        let key = match key {
            Some(_) if self.brief && order.is_some() && order == self.order.as_deref() => "",
            Some(key) => key,
            None => "-",
        };
        self.key = widened(self.key, key, KEY.2);
        self.order = order.map(Into::into);
        let (who, key) = (pad(who, self.who), pad(key, self.key));
        let who = if is_type { self.paint.name(&who) } else { who.as_str().into() };
        let text = format!("{}  {what}  {who}  {key}  {rest}", self.paint.dim(clock(time)));
        Line { day: time.get(..10).map(Into::into), text: text.trim_end().into() }
    }
}

/// The order whose step a task is. Of tasks without an event, only those have a key; and what an event has made is an
/// order of its id, which no object is named by.
pub(super) fn order_of(change: &TaskChangeBody) -> Option<&str> {
    let key = change.key.as_deref()?;
    let is_step = change.event_id.is_none_or(|event| key.ends_with(&format!(",{event}")));
    is_step.then_some(key)
}

/// The width of a column that is to hold this text too: once widened it stays so, and the lines below are aligned.
fn widened(width: usize, text: &str, most: usize) -> usize {
    match measured(&clean(text)) {
        length if length <= most => width.max(length),
        _ => width,
    }
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

/// A text in its column. One that is too long takes what it needs: names are not cut.
fn pad(text: &str, width: usize) -> String {
    padded(&clean(text), width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Color;

    const EVENT: &str = r#"{"eventId":1478257655827000,"TYPE":"record.published","key":"record:1","prev":null,"value":{"title":"Hello"},"context":{},"tenant":"default"}"#;
    const TASK: &str = r#"{"id":"index_record.published_x","handler":"index","tenant":"default","key":"record:1","collection":"record.published","event_id":1478257655827000,"status":"SCHEDULED","state":"new","attempt":1,"error":"refused","delay_until":"2016-11-04T11:07:40.000000Z","time":"2016-11-04T11:07:36.000000Z"}"#;

    fn lines(brief: bool) -> Lines {
        Lines::new(Paint::new(Color::Never), brief.then_some(200))
    }

    #[test]
    fn a_narrow_terminal_gets_narrow_columns() {
        let mut lines = Lines::new(Paint::new(Color::Never), Some(80));
        let line = lines.event(EVENT).unwrap().text;
        assert!(
            line.starts_with("11:07:35.827  event      record.published  record:1      1478257655827000"),
            "{line}"
        );
    }

    #[test]
    fn lines_are_aligned_and_say_what_matters() {
        let mut lines = lines(false);
        let (event, task) = (lines.event(EVENT).unwrap(), lines.task(TASK).unwrap());
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
        let mut lines = lines(false);
        let order = r#"{"eventId":1478257655827000,"key":"/publish/article,117","TYPE":"OrderNodeChanged","fromNodeId":"render","nodeId":"deploy"}"#;
        assert_eq!(
            lines.event(order).unwrap().text,
            "11:07:35.827  order      OrderNodeChanged          /publish/article,117  1478257655827000  render → deploy"
        );
        let task = r#"{"eventId":1478257655827000,"key":{"jobPath":"/index","taskId":"index_x_1"},"TYPE":"TaskEnded","returnCode":3}"#;
        assert_eq!(
            lines.event(task).unwrap().text,
            "11:07:35.827  task       TaskEnded                 /index                1478257655827000  return code 3  index_x_1"
        );
        let state = r#"{"eventId":1478257655827000,"TYPE":"SchedulerClosed"}"#;
        assert!(lines.event(state).unwrap().text.ends_with("  -                     1478257655827000"));
    }

    #[test]
    fn a_long_name_widens_its_column_for_all_that_follows() {
        let mut lines = lines(false);
        let added = r#"{"eventId":1478257655827000,"key":"Order:/publish/article,1478257655827000","TYPE":"FileBasedAdded","nodeId":"x"}"#;
        let long = lines.event(added).unwrap().text;
        assert!(long.contains("  /publish/article,1478257655827000  1478257655827000  at x"), "{long}");
        let short = lines.event(EVENT).unwrap().text;
        assert_eq!(short.find("1478257655827000"), long.rfind("1478257655827000"));
        let endless = EVENT.replace("record:1", &"k".repeat(200));
        lines.event(&endless).unwrap();
        assert_eq!(lines.event(EVENT).unwrap().text, short, "one that is too long is alone in it");
    }

    #[test]
    fn people_read_the_name_of_an_order_once() {
        let order = r#"{"eventId":1478257655827000,"key":"/publish/article,117","TYPE":"OrderSuspended"}"#;
        let step = TASK
            .replace("record:1", "/publish/article,117")
            .replace(r#""event_id":1478257655827000"#, r#""event_id":null"#);
        let mut brief = lines(true);
        let texts = [brief.event(order), brief.task(&step), brief.event(EVENT), brief.event(order)];
        let named = texts.map(|line| line.unwrap().text.contains("/publish/article,117"));
        assert_eq!(named, [true, false, false, true]);
        let mut whole = lines(false);
        assert!(
            [whole.event(order), whole.event(order)].iter().flatten().all(|line| line.text.contains(",117"))
        );
    }

    #[test]
    fn a_time_that_has_come_is_not_told() {
        let due = TASK.replace("11:07:40", "11:07:36");
        let line = lines(false).task(&due).unwrap().text;
        assert!(line.ends_with("attempt 1: refused  index_record.published_x"), "{line}");
    }

    #[test]
    fn a_tear_is_told_plainly() {
        let told = torn(Paint::new(Color::Never), r#"{"TYPE":"Torn","eventId":9}"#).unwrap().text;
        assert!(told.starts_with("TORN: ") && told.ends_with("the newest is 9"), "{told}");
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        assert_eq!(lines(false).event("{}"), None);
        assert_eq!(lines(false).task("nonsense"), None);
    }
}

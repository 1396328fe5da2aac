//! The lines of `watch`, in columns: time, status or subject, type or handler, key, details.

use pointsman_api::{EventSeq, TaskChangeBody};

use crate::output::{Paint, display_width, escape_and_shorten, escape_controls, pad_to_width, time_of_day};
use crate::stream_line::StreamLine;

/// A printed line with the day of its time; a line without a time has no day.
#[derive(Debug, PartialEq)]
pub(super) struct WatchLine {
    pub(super) day: Option<String>,
    pub(super) text: String,
}

/// The width of the second column: a task's status or an event's subject.
const STATUS_OR_SUBJECT_WIDTH: usize = 9;
/// The widths of a column: the first width on a narrow and on a wide terminal, and the maximum, up to which longer texts
/// widen it. A text above the maximum exceeds its column.
struct ColumnWidths {
    initial_on_narrow: usize,
    initial_on_wide: usize,
    max: usize,
}

const TYPE_OR_HANDLER_WIDTHS: ColumnWidths =
    ColumnWidths { initial_on_narrow: 16, initial_on_wide: 24, max: 32 };
const KEY_WIDTHS: ColumnWidths = ColumnWidths { initial_on_narrow: 12, initial_on_wide: 20, max: 48 };
/// A terminal with fewer columns is narrow: a line with an id and nothing else would not fit the wide columns.
const MIN_WIDE_TERMINAL_COLUMNS: usize = 100;

/// Formats the lines of `watch`, and keeps the widths of their columns.
pub(super) struct WatchLineFormatter {
    paint: Paint,
    type_or_handler_width: usize,
    key_width: usize,
    /// The key of the order that the previous line is about. A terminal does not repeat it; a pipe gets every line
    /// complete.
    previous_order_key: Option<String>,
    omits_repeated_order_key: bool,
}

/// The maximum width of an error, in columns of the terminal.
const MAX_ERROR_WIDTH: usize = 160;

pub(super) fn newest_event_id(seq: &EventSeq) -> u64 {
    match seq {
        EventSeq::NonEmpty { event_id, .. }
        | EventSeq::Empty { event_id, .. }
        | EventSeq::Torn { event_id } => *event_id,
    }
}

impl WatchLineFormatter {
    /// A formatter for a terminal of this many columns, or for a pipe.
    pub(super) fn new(paint: Paint, columns: Option<usize>) -> Self {
        let is_narrow = columns.is_some_and(|columns| columns < MIN_WIDE_TERMINAL_COLUMNS);
        let initial =
            |widths: ColumnWidths| if is_narrow { widths.initial_on_narrow } else { widths.initial_on_wide };
        Self {
            paint,
            type_or_handler_width: initial(TYPE_OR_HANDLER_WIDTHS),
            key_width: initial(KEY_WIDTHS),
            previous_order_key: None,
            omits_repeated_order_key: columns.is_some(),
        }
    }

    pub(super) fn format_event(&mut self, data: &str) -> Option<WatchLine> {
        let event = StreamLine::from_json(data)?;
        let paint = self.paint;
        let time = event.event_id.timestamp().to_string();
        let blank = if event.text.is_empty() || event.task_id.is_none() { "" } else { "  " };
        let task = event.task_id.as_deref().map(escape_controls).unwrap_or_default();
        let details = format!("{}  {}{blank}{}", event.event_id, event.text, paint.dim(&task));
        let order = event.order_key();
        let key = order.or(event.key.as_deref());
        let subject =
            paint.bold(&escape_and_pad(event.subject.label(), STATUS_OR_SUBJECT_WIDTH)).into_owned();
        Some(self.format_columns(&time, &subject, (&event.event_type, true), key, order, &details))
    }

    pub(super) fn format_task(&mut self, data: &str) -> Option<WatchLine> {
        let change: TaskChangeBody = serde_json::from_str(data).ok()?;
        let paint = self.paint;
        let status = escape_and_pad(&change.status, STATUS_OR_SUBJECT_WIDTH);
        let status = paint.color_by_status(&change.status, &status).into_owned();
        let mut details = match change.attempt {
            0 => String::new(),
            attempt => format!("attempt {attempt}"),
        };
        if let Some(error) = &change.error {
            details.push_str(&format!(": {}", escape_and_shorten(error, MAX_ERROR_WIDTH)));
        }
        // Both times have the same format, so that they compare as text.
        if change.delay_until > change.time {
            let separator = if details.is_empty() { "" } else { "; " };
            details.push_str(&format!("{separator}not before {}", time_of_day(&change.delay_until)));
        }
        let blank = if details.is_empty() { "" } else { "  " };
        details.push_str(&format!("{blank}{}", paint.dim(&change.id)));
        let key = change.key.as_deref();
        let order = order_key_of_step(&change);
        Some(self.format_columns(&change.time, &status, (&change.handler, false), key, order, &details))
    }

    fn format_columns(
        &mut self,
        time: &str,
        status: &str,
        (name, is_event_type): (&str, bool),
        key: Option<&str>,
        order: Option<&str>,
        details: &str,
    ) -> WatchLine {
        self.type_or_handler_width =
            widen_to_fit(self.type_or_handler_width, name, TYPE_OR_HANDLER_WIDTHS.max);
        let is_repeated = order.is_some() && order == self.previous_order_key.as_deref();
        let key = match key {
            Some(_) if self.omits_repeated_order_key && is_repeated => "",
            Some(key) => key,
            None => "-",
        };
        self.key_width = widen_to_fit(self.key_width, key, KEY_WIDTHS.max);
        self.previous_order_key = order.map(Into::into);
        let (name, key) =
            (escape_and_pad(name, self.type_or_handler_width), escape_and_pad(key, self.key_width));
        let name = if is_event_type { self.paint.cyan(&name) } else { name.as_str().into() };
        let text = format!("{}  {status}  {name}  {key}  {details}", self.paint.dim(time_of_day(time)));
        WatchLine { day: time.get(..10).map(Into::into), text: text.trim_end().into() }
    }
}

/// The key of the order that a task is a step of, if any. A task without an event has a key only if it is a step; an
/// order started by an event has the event's id, which no object key ends with.
pub(super) fn order_key_of_step(change: &TaskChangeBody) -> Option<&str> {
    let key = change.key.as_deref()?;
    let is_step = change.event_id.is_none_or(|event| key.ends_with(&format!(",{event}")));
    is_step.then_some(key)
}

/// The new width of a column: wide enough for this text, unless the text is wider than the maximum. The column stays
/// that wide, so that later lines are aligned.
fn widen_to_fit(width: usize, text: &str, max_width: usize) -> usize {
    match display_width(&escape_controls(text)) {
        length if length <= max_width => width.max(length),
        _ => width,
    }
}

pub(super) fn format_torn_frame(paint: Paint, data: &str) -> Option<WatchLine> {
    let seq: EventSeq = serde_json::from_str(data).ok()?;
    let text = format!(
        "TORN: events expired before they could be shown, or the id to start after is not from this journal; the newest \
         event is {}",
        newest_event_id(&seq)
    );
    Some(WatchLine { day: None, text: paint.red(&text).into_owned() })
}

/// Escapes and pads a text. A longer text is not cut: names stay complete.
fn escape_and_pad(text: &str, width: usize) -> String {
    pad_to_width(&escape_controls(text), width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ColorChoice;

    const EVENT_JSON: &str = r#"{"eventId":1478257655827000,"TYPE":"record.published","key":"record:1","prev":null,"value":{"title":"Hello"},"context":{},"tenant":"default"}"#;
    const TASK_JSON: &str = r#"{"id":"index_record.published_x","handler":"index","tenant":"default","key":"record:1","collection":"record.published","event_id":1478257655827000,"status":"SCHEDULED","state":"new","attempt":1,"error":"refused","delay_until":"2016-11-04T11:07:40.000000Z","time":"2016-11-04T11:07:36.000000Z"}"#;

    fn new_formatter(is_terminal: bool) -> WatchLineFormatter {
        WatchLineFormatter::new(Paint::for_stdout(ColorChoice::Never), is_terminal.then_some(200))
    }

    #[test]
    fn a_narrow_terminal_gets_narrow_columns() {
        let mut lines = WatchLineFormatter::new(Paint::for_stdout(ColorChoice::Never), Some(80));
        let line = lines.format_event(EVENT_JSON).unwrap().text;
        assert!(
            line.starts_with("11:07:35.827  event      record.published  record:1      1478257655827000"),
            "{line}"
        );
    }

    #[test]
    fn events_and_task_changes_are_aligned() {
        let mut lines = new_formatter(false);
        let (event, task) = (lines.format_event(EVENT_JSON).unwrap(), lines.format_task(TASK_JSON).unwrap());
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
    fn engine_events_are_aligned_and_end_with_a_sentence() {
        let mut lines = new_formatter(false);
        let order = r#"{"eventId":1478257655827000,"key":"/publish/article,117","TYPE":"OrderNodeChanged","fromNodeId":"render","nodeId":"deploy"}"#;
        assert_eq!(
            lines.format_event(order).unwrap().text,
            "11:07:35.827  order      OrderNodeChanged          /publish/article,117  1478257655827000  order 117 moved from render to deploy"
        );
        let task = r#"{"eventId":1478257655827000,"key":{"jobPath":"/index","taskId":"index_x_1"},"TYPE":"TaskEnded","returnCode":3}"#;
        assert_eq!(
            lines.format_event(task).unwrap().text,
            "11:07:35.827  task       TaskEnded                 /index                1478257655827000  task of handler index ended with return code 3  index_x_1"
        );
        let closed = r#"{"eventId":1478257655827000,"TYPE":"SchedulerClosed"}"#;
        assert!(
            lines
                .format_event(closed)
                .unwrap()
                .text
                .ends_with("  -                     1478257655827000  scheduler closed")
        );
    }

    #[test]
    fn a_long_name_widens_its_column_for_later_lines() {
        let mut lines = new_formatter(false);
        let added = r#"{"eventId":1478257655827000,"key":"Order:/publish/article,1478257655827000","TYPE":"FileBasedAdded","nodeId":"x"}"#;
        let long = lines.format_event(added).unwrap().text;
        assert!(long.contains("  /publish/article,1478257655827000  1478257655827000  order 1478257655827000 added to /publish/article at x"), "{long}");
        let short = lines.format_event(EVENT_JSON).unwrap().text;
        assert_eq!(short.find("1478257655827000"), long.find("  1478257655827000  ").map(|start| start + 2));
        let too_long = EVENT_JSON.replace("record:1", &"k".repeat(200));
        lines.format_event(&too_long).unwrap();
        assert_eq!(
            lines.format_event(EVENT_JSON).unwrap().text,
            short,
            "a key above the maximum does not widen the column"
        );
    }

    #[test]
    fn a_terminal_does_not_repeat_the_order_key() {
        let order = r#"{"eventId":1478257655827000,"key":"/publish/article,117","TYPE":"OrderSuspended"}"#;
        let step = TASK_JSON
            .replace("record:1", "/publish/article,117")
            .replace(r#""event_id":1478257655827000"#, r#""event_id":null"#);
        let mut terminal = new_formatter(true);
        let texts = [
            terminal.format_event(order),
            terminal.format_task(&step),
            terminal.format_event(EVENT_JSON),
            terminal.format_event(order),
        ];
        let has_key = texts.map(|line| line.unwrap().text.contains("/publish/article,117"));
        assert_eq!(has_key, [true, false, false, true]);
        let mut pipe = new_formatter(false);
        assert!(
            [pipe.format_event(order), pipe.format_event(order)]
                .iter()
                .flatten()
                .all(|line| line.text.contains(",117"))
        );
    }

    #[test]
    fn a_delay_that_has_passed_is_not_printed() {
        let due = TASK_JSON.replace("11:07:40", "11:07:36");
        let line = new_formatter(false).format_task(&due).unwrap().text;
        assert!(line.ends_with("attempt 1: refused  index_record.published_x"), "{line}");
    }

    #[test]
    fn a_torn_frame_is_printed_with_the_newest_id() {
        let text = format_torn_frame(Paint::for_stdout(ColorChoice::Never), r#"{"TYPE":"Torn","eventId":9}"#)
            .unwrap()
            .text;
        assert!(text.starts_with("TORN: ") && text.ends_with("the newest event is 9"), "{text}");
    }

    #[test]
    fn unreadable_frames_are_skipped() {
        assert_eq!(new_formatter(false).format_event("{}"), None);
        assert_eq!(new_formatter(false).format_task("nonsense"), None);
    }
}

//! Lists of tasks.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{TaskBody, TaskList};
use pointsman_core::store::TaskFilter;
use pointsman_core::task::{EndReason, Task};
use pointsman_core::{Status, TaskSeq};

use crate::app::App;
use crate::auth::Viewer;
use crate::problem::Problem;
use crate::query::Query;

/// How many tasks are shown unless the caller says so, and at most.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;
/// How many stretches of the store are looked at for one answer.
const MAX_PAGES: usize = 16;

/// Tasks, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/tasks",
    operation_id = "list_tasks",
    tag = "tasks",
    params(
        ("status" = Option<String>, Query, description = "SCHEDULED, RUNNING, SUCCESS, FAILED or CANCELED; \
            or new, scheduled, locked, done, error or missing"),
        ("handler" = Option<String>, Query, description = "a handler's name"),
        ("tenant" = Option<String>, Query, description = "a tenant"),
        ("key" = Option<String>, Query, description = "an object"),
        ("start" = Option<String>, Query, description = "created at or after this time (RFC 3339)"),
        ("end" = Option<String>, Query, description = "created before this time (RFC 3339)"),
        ("limit" = Option<u16>, Query, description = "1 to 1000, 100 if not given"),
        ("cursor" = Option<String>, Query, description = "the `next` of the answer before"),
    ),
    responses((status = 200, description = "The tasks", body = TaskList)),
)]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<TaskList>, Problem> {
    let known = ["status", "handler", "tenant", "key", "start", "end", "limit", "cursor"];
    let query = Query::of(&uri, &known)?;
    let wanted = query.read("status", Wanted::read)?.unwrap_or_default();
    let filter = TaskFilter {
        statuses: wanted.statuses.clone(),
        handler: query.parse("handler")?,
        tenant: caller.tenant(query.parse("tenant")?)?,
        key: query.parse("key")?,
        start: query.parse("start")?,
        end: query.parse("end")?,
    };
    let limit = query.read("limit", limit)?.unwrap_or(DEFAULT_LIMIT);
    let cursor = query.read("cursor", cursor)?;
    Ok(Json(read(&app, filter, &wanted, limit, cursor).await?))
}

/// Reads on until there is enough: a store's page may be short, and cancelled tasks are told from failed ones
/// only here.
async fn read(
    app: &App,
    filter: TaskFilter,
    wanted: &Wanted,
    limit: usize,
    mut before: Option<TaskSeq>,
) -> Result<TaskList, Problem> {
    let mut tasks: Vec<TaskBody> = Vec::new();
    let mut head = None;
    for _ in 0..MAX_PAGES {
        let page = app.store().tasks(filter.clone(), before, limit - tasks.len()).await?;
        head.get_or_insert(page.extent.head);
        tasks.extend(page.tasks.iter().filter(|task| wanted.takes(task)).map(TaskBody::from));
        before = page.next;
        if before.is_none() || tasks.len() >= limit {
            break;
        }
    }
    let event_id = head.unwrap_or_default().get();
    Ok(TaskList { event_id, tasks, next: before.map(|seq| seq.to_string()) })
}

/// The tasks of one status, in either vocabulary.
#[derive(Clone, Debug, Default, PartialEq)]
struct Wanted {
    statuses: Vec<Status>,
    /// Whether those in `error` must have been cancelled, or must not.
    canceled: Option<bool>,
}

impl Wanted {
    fn read(text: &str) -> Result<Self, String> {
        let of = |statuses: &[Status], canceled| Ok(Self { statuses: statuses.to_vec(), canceled });
        match text {
            "SCHEDULED" => of(&[Status::New, Status::Scheduled], None),
            "RUNNING" => of(&[Status::Locked], None),
            "SUCCESS" => of(&[Status::Done], None),
            "FAILED" => of(&[Status::Error, Status::Missing], Some(false)),
            "CANCELED" => of(&[Status::Error], Some(true)),
            other => match Status::ALL.into_iter().find(|status| status.as_str() == other) {
                Some(status) => of(&[status], None),
                None => Err(format!(
                    "{other:?} is not a status; there are SCHEDULED, RUNNING, SUCCESS, FAILED, CANCELED, and new, \
                     scheduled, locked, done, error, missing"
                )),
            },
        }
    }

    fn takes(&self, task: &Task) -> bool {
        let canceled = task.life.state.reason() == Some(EndReason::Canceled);
        self.canceled.is_none_or(|wanted| wanted == canceled)
    }
}

fn limit(text: &str) -> Result<usize, String> {
    let number =
        text.parse().ok().filter(|number| (1..=MAX_LIMIT).contains(number) && !text.starts_with('+'));
    number.ok_or_else(|| format!("a limit is a whole number from 1 to {MAX_LIMIT}"))
}

fn cursor(text: &str) -> Result<TaskSeq, &'static str> {
    let number = text.parse().ok().filter(|number: &i64| *number >= 0 && !text.starts_with('+'));
    number.map(TaskSeq).ok_or("a cursor is the `next` of an answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_vocabularies_are_understood() {
        assert_eq!(Wanted::read("SCHEDULED").unwrap().statuses, [Status::New, Status::Scheduled]);
        assert_eq!(Wanted::read("CANCELED").unwrap().canceled, Some(true));
        assert_eq!(Wanted::read("error").unwrap(), Wanted { statuses: vec![Status::Error], canceled: None });
        assert!(Wanted::read("Scheduled").is_err());
    }

    #[test]
    fn limits_are_1_to_1000() {
        assert_eq!(limit("1000"), Ok(1000));
        for bad in ["0", "1001", "-1", "+5", "x", ""] {
            assert!(limit(bad).is_err(), "{bad:?}");
        }
    }
}

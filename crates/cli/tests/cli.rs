//! Recorded output of the command line: help, usage errors and errors without a server (`cmd`), and output with a server
//! (`live`). `TRYCMD=overwrite` updates the expected texts; review the diff before you commit it.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

#[path = "common/test_server.rs"]
mod test_server;

use test_server::ServerFixture;

#[test]
fn help_and_errors_match_the_recorded_output() {
    trycmd::TestCases::new()
        // No server listens there; this overrides the environment of the test run.
        .env("POINTSMAN_URL", "http://127.0.0.1:1")
        .env("POINTSMAN_TOKEN", "")
        .env("POINTSMAN_TOKEN_FILE", "")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("tests/cmd/*.md");
}

/// The tokens are `admin-token`, `viewer-token` and `shop-token`. Output contains no times of the run: the only schedule
/// fires in a distant year.
const CONFIG: &str = r#"
auth:
  tokens:
    - {name: boss, role: admin, sha256: "10a4c7c9fc5206d6f36dc6944a81bb6f4a3cb0e25014ae3b12e6c3e52712292a"}
    - {name: viewer, role: viewer, sha256: "d036bd6d01a1cae081d39a2f8dab751dc042de814fd60df31fcb553170950f29"}
    - {name: shop, role: operator, tenant: shop, sha256: "88cc4600551e64b7cb97dd7f63ebad405255e5d17bdd71ee9fe1ed5cc20d0b3b"}
handlers:
  notify: {run: pull, concurrency: 4, rate: 100/m}
  index: {run: {command: ["true"]}}
  fail: {run: {command: ["sh", "-c", "echo no good >&2; exit 3"]}, retry: {max: 0}}
event_handlers:
  record.published: [notify]
  record.spoilt: [fail]
sources:
  shop: {run: {command: ["true"]}, collections: [{name: orders}, {name: customers}]}
schedules:
  jubilee: {cron: "0 0 12 1 1 ? 2098", emit: {type: record.published, key: "report:century"}}
chains:
  /publish/article:
    nodes:
      - {id: render, handler: notify, next: deploy}
      - {id: deploy, handler: index, next: done}
      - {id: done, end: true}
"#;

#[test]
fn output_with_a_server_matches_the_recorded_output() {
    let mut pointsman = ServerFixture::new(CONFIG).with_token("admin-token");
    let _node = pointsman.serve();
    pointsman.run_ok(&["emit", "record.published", "--key", "record:1"]);
    pointsman.run_ok(&["orders", "add", "/publish/article,117"]);
    pointsman.run_ok(&["emit", "record.spoilt", "--key", "record:2"]);
    test_server::wait_until("one has failed", || {
        !pointsman.run_json(&["tasks", "--status", "FAILED"])["tasks"].as_array().unwrap().is_empty()
    });
    trycmd::TestCases::new()
        .env("POINTSMAN_URL", format!("http://{}", pointsman.address()))
        .env("POINTSMAN_TOKEN", pointsman.token())
        .env("POINTSMAN_TOKEN_FILE", "")
        .env("NO_COLOR", "1")
        .case("tests/live/*.md");
}

//! What the command line says, recorded: help, wrong usage, errors without a server (`cmd`), and what it says beside one
//! (`live`). `TRYCMD=overwrite` renews the expected texts; read what changed before you commit it.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

#[path = "common/node.rs"]
mod node;

use node::Place;

#[test]
fn the_command_line_reads_as_documented() {
    trycmd::TestCases::new()
        // Nobody listens there, and whoever runs the tests may have a server of their own in their environment.
        .env("POINTSMAN_URL", "http://127.0.0.1:1")
        .env("POINTSMAN_TOKEN", "")
        .env("POINTSMAN_TOKEN_FILE", "")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("tests/cmd/*.md");
}

/// The tokens are `admin-token`, `viewer-token` and `shop-token`. Times are never those of the run: nothing is planned
/// but for one day in a far year.
const CONFIG: &str = r#"
auth:
  tokens:
    - {name: boss, role: admin, sha256: "10a4c7c9fc5206d6f36dc6944a81bb6f4a3cb0e25014ae3b12e6c3e52712292a"}
    - {name: looker, role: viewer, sha256: "d036bd6d01a1cae081d39a2f8dab751dc042de814fd60df31fcb553170950f29"}
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
fn beside_a_server_it_reads_as_recorded() {
    let mut place = Place::new(CONFIG).with_token("admin-token");
    let _node = place.serve();
    place.ok(&["emit", "record.published", "--key", "record:1"]);
    place.ok(&["orders", "add", "/publish/article,117"]);
    place.ok(&["emit", "record.spoilt", "--key", "record:2"]);
    node::until("one has failed", || {
        !place.json(&["tasks", "--status", "FAILED"])["tasks"].as_array().unwrap().is_empty()
    });
    trycmd::TestCases::new()
        .env("POINTSMAN_URL", format!("http://{}", place.address()))
        .env("POINTSMAN_TOKEN", place.token())
        .env("POINTSMAN_TOKEN_FILE", "")
        .env("NO_COLOR", "1")
        .case("tests/live/*.md");
}

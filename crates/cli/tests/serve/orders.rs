//! Chains and orders from the command line: the example, and every command that controls them.

use serde_json::Value;

use crate::test_server::{ServerFixture, wait_until};

/// Chains whose steps succeed, emit an event, or fail.
const CHAINS_CONFIG: &str = r#"
handlers:
  first: {run: {command: ["sh", "-c", "echo '{\"result\": {\"by\": \"first\"}}' >> $POINTSMAN_EFFECTS"]}}
  second: {run: {command: ["sh", "-c", "echo '{\"emit\": [{\"type\": \"order.done\"}]}' >> $POINTSMAN_EFFECTS"]}}
  fails: {run: {command: ["sh", "-c", "exit 3"]}, retry: {max: 0}}
chains:
  /a/way:
    nodes:
      - {id: one, handler: first, next: two}
      - {id: two, handler: second, next: done}
      - {id: done, end: true}
  /a/fault: {nodes: [{id: one, handler: fails, next: done}, {id: done, end: true}]}
event_handlers:
  order.placed: [/a/way]
"#;

/// Creates a server fixture with the configuration and the scripts of `examples/publish`.
fn new_publish_example_fixture() -> ServerFixture {
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/publish");
    let file = |name: &str| std::fs::read_to_string(format!("{from}/{name}")).unwrap();
    let pointsman = ServerFixture::new(&file("pointsman.yml"));
    for step in ["render.py", "deploy.py"] {
        std::fs::write(pointsman.file_path(step), file(step)).unwrap();
    }
    pointsman
}

fn run_for_exit_code_and_stderr(pointsman: &ServerFixture, arguments: &[&str]) -> (i32, String) {
    let output = pointsman.run_command(arguments);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn list_orders(pointsman: &ServerFixture) -> Vec<Value> {
    pointsman.run_json(&["orders"])["orders"].as_array().unwrap().clone()
}

#[test]
fn the_example_publishes_an_article_after_a_retried_step() {
    let mut pointsman = new_publish_example_fixture();
    let _node = pointsman.serve();
    // All runs of this test share one directory of pages.
    let id = format!("test-{}", std::process::id());
    let order = format!("/publish/article,{id}");
    let watch = pointsman.start_watch(&["-o", "json", "--since-start", "--no-tasks"]);
    let added = pointsman.run_ok(&["orders", "add", &order, "--value", r#"{"title":"<Hello>","busy":1}"#]);
    assert_eq!(added, order);

    let appeared = watch.lines.wait_for_json("the order", |event| event["key"] == format!("Order:{order}"));
    assert_eq!((&appeared["TYPE"], &appeared["nodeId"]), (&"FileBasedAdded".into(), &"render".into()));
    let next = |event_type: &str| {
        watch.lines.wait_for_json(event_type, |event| event["TYPE"] == event_type && event["key"] == order)
    };
    let changed = next("OrderNodeChanged");
    assert_eq!((&changed["fromNodeId"], &changed["nodeId"]), (&"render".into(), &"deploy".into()));
    assert_eq!(next("OrderStepEnded")["nodeTransition"]["TYPE"], "Keep");
    assert_eq!(next("OrderSetBack")["nodeId"], "deploy");
    assert_eq!(next("OrderStepEnded")["nodeTransition"]["TYPE"], "Success");
    assert_eq!(next("OrderFinished")["nodeId"], "done");
    let deployed =
        watch.lines.wait_for_json("the emitted event", |event| event["TYPE"] == "article.deployed");
    let page = std::fs::read_to_string(deployed["value"]["page"].as_str().unwrap()).unwrap();
    assert!(page.contains("<h1>&lt;Hello&gt;</h1>"), "{page}");
    std::fs::remove_file(deployed["value"]["page"].as_str().unwrap()).unwrap();
    assert!(list_orders(&pointsman).is_empty());

    pointsman.run_ok(&["orders", "add", "/publish/article,untitled", "--value", "{}"]);
    let failed = watch.lines.wait_for_json("the end", |event| {
        event["TYPE"] == "OrderFinished" && event["key"] == "/publish/article,untitled"
    });
    assert_eq!(failed["nodeId"], "failed");
}

#[test]
fn an_order_is_suspended_changed_moved_and_resumed() {
    let mut pointsman = ServerFixture::new(CHAINS_CONFIG);
    let _node = pointsman.serve();
    pointsman.run_ok(&["chains", "stop", "/a/way"]);
    assert_eq!(pointsman.run_ok(&["orders", "add", "/a/way,1", "--value", "1"]), "/a/way,1");
    let with_new_id = pointsman.run_ok(&["orders", "add", "/a/way", "--node", "two"]);
    assert!(with_new_id.starts_with("/a/way,"), "{with_new_id}");
    assert_eq!(list_orders(&pointsman).len(), 2);

    assert_eq!(pointsman.run_ok(&["orders", "suspend", "/a/way,1"]), "/a/way,1  one  suspended");
    assert_eq!(
        pointsman.run_ok(&["orders", "move", "/a/way,1", "--node", "two"]),
        "/a/way,1  two  suspended"
    );
    pointsman.run_ok(&["orders", "set", "/a/way,1", "--value", r#"{"set":true}"#]);
    let shown = pointsman.run_json(&["orders", "show", "/a/way,1"]);
    assert_eq!((&shown["node"], &shown["value"]["set"]), (&"two".into(), &true.into()));
    let table = pointsman.run_ok(&["orders", "list", "/a/"]);
    assert!(table.starts_with("ORDER") && table.contains("suspended"), "{table}");
    let stats = pointsman.run_json(&["orders", "stats", "/a/way"]);
    assert_eq!((&stats["total"], &stats["suspended"]), (&2.into(), &1.into()));

    assert_eq!(pointsman.run_ok(&["orders", "remove", &with_new_id]), format!("{with_new_id}  two  removed"));
    let watch = pointsman.start_watch(&["--since-start", "--return", "OrderNodeChanged,OrderFinished"]);
    assert_eq!(pointsman.run_ok(&["chains", "start", "/a/way"]), "/a/way is running.");
    pointsman.run_ok(&["orders", "resume", "/a/way,1"]);
    watch.lines.wait_for_match("the move", |line| {
        (line.contains("OrderNodeChanged") && line.contains("order 1 moved from one to two")).then_some(())
    });
    watch.lines.wait_for_match("the end", |line| {
        (line.contains("OrderFinished") && line.ends_with("order 1 finished at done")).then_some(())
    });
    assert_eq!(pointsman.run_ok(&["orders", "list", "/a/way"]), "No orders at /a/way.");
}

#[test]
fn changes_of_chains_and_chain_nodes_print_a_sentence() {
    let mut pointsman = ServerFixture::new(CHAINS_CONFIG);
    let _node = pointsman.serve();
    assert_eq!(pointsman.run_ok(&["chains", "stop", "/a/way"]), "/a/way is stopped.");
    assert_eq!(
        pointsman.run_ok(&["chains", "node", "/a/way", "two", "next_state"]),
        "Node two of /a/way is set to next_state."
    );
    pointsman.run_ok(&["orders", "add", "/a/way,1"]);
    let list = pointsman.run_ok(&["chains"]);
    assert!(list.contains("stopped") && list.contains("one two(next_state) done"), "{list}");
    let table = pointsman.run_ok(&["chains", "show", "/a/way"]);
    assert!(table.contains("next_state") && table.contains("(suspend)"), "{table}");

    let paused = pointsman.run_ok(&["pause", "/a/way", "--reason", "a test"]);
    assert!(paused.starts_with("/a/way is paused.\n\nRULE") && paused.ends_with("a test"), "{paused}");
    pointsman.run_ok(&["chains", "start", "/a/way"]);
    let task = list_orders(&pointsman)[0]["task"]["id"].as_str().unwrap().to_owned();
    assert!(pointsman.run_ok(&["tasks", "why", &task]).contains("a test"));
    assert_eq!(pointsman.run_ok(&["resume", "/a/way"]), "/a/way is no longer paused.");
    assert_eq!(pointsman.run_ok(&["resume", "/a/way"]), "/a/way was not paused.");
    wait_until("it has arrived", || list_orders(&pointsman).is_empty());
}

#[test]
fn errors_about_orders_have_hints() {
    let mut pointsman = ServerFixture::new(CHAINS_CONFIG);
    let _node = pointsman.serve();
    pointsman.run_ok(&["orders", "add", "/a/fault,1"]);
    wait_until("it is suspended by its failure", || list_orders(&pointsman)[0]["suspended"] == true);
    for (command, expected) in [
        (&["orders", "add", "/a/fault,1"][..], "Without an id the order gets a new one"),
        (&["orders", "add", "/a/fault,1794765138252000"], "Without an id the order gets a new one"),
        (&["orders", "add", "/a/falt,1"], "did you mean `/a/fault`?"),
        (&["orders", "add", "/a/way,1", "--node", "three"], "`pointsman chains show /a/way`"),
        (&["orders", "show", "/a/way,9"], "`pointsman tasks --key /a/way,9`"),
        (&["orders", "move", "/a/fault,1", "--node", "oen"], "lists its nodes; did you mean `one`?"),
        (&["orders", "suspend", "/a/way,8", "/a/way,9"], "2 of 2 orders could not be suspended"),
        (&["chains", "stop", "/a/wy"], "`pointsman chains`"),
        (&["pause", "/a/wy"], "`pointsman chains`"),
    ] {
        let (code, stderr) = run_for_exit_code_and_stderr(&pointsman, command);
        assert_eq!(code, 1, "{command:?}: {stderr}");
        assert!(stderr.contains(expected), "{command:?}: {stderr}");
    }
    let task =
        pointsman.run_json(&["tasks", "--handler", "fails"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    let retried = run_for_exit_code_and_stderr(&pointsman, &["tasks", "retry", &task]).1;
    assert!(retried.contains("`pointsman orders resume /a/fault,1`"), "{retried}");
    for (command, expected) in [
        (&["orders", "set", "/a/fault,1"][..], "a new value with --value or a new time with --at"),
        (&["orders", "add", "/a/way", "--in", "-5s"], "cannot start in the past"),
    ] {
        let (code, stderr) = run_for_exit_code_and_stderr(&pointsman, command);
        assert!(code == 2 && stderr.contains(expected), "{command:?}: {stderr}");
    }
}

#[test]
fn orders_show_suggests_the_next_command_and_orders_list_explains_paths_without_orders() {
    let mut pointsman = ServerFixture::new(CHAINS_CONFIG);
    let _node = pointsman.serve();
    pointsman.run_ok(&["orders", "add", "/a/fault,1"]);
    wait_until("it is suspended by its failure", || list_orders(&pointsman)[0]["suspended"] == true);
    pointsman.run_ok(&["chains", "stop", "/a/way"]);
    pointsman.run_ok(&["orders", "add", "/a/way,1"]);

    let list = pointsman.run_ok(&["orders"]);
    assert!(list.contains("suspended: exit code 3"), "{list}");
    assert!(list.contains("blocked: the chain /a/way is stopped"), "{list}");
    assert!(list.lines().next().is_some_and(|head| head.ends_with("VALUE")), "{list}");
    let failed = pointsman.run_ok(&["orders", "show", "/a/fault,1"]);
    assert!(failed.contains("fails_one_") && failed.contains("exit code 3"), "{failed}");
    assert!(failed.ends_with("To retry the step: pointsman orders resume /a/fault,1"), "{failed}");

    assert_eq!(
        pointsman.run_ok(&["orders", "move", "/a/way,1", "--node", "done"]),
        "/a/way,1  done  finished"
    );
    let list = |path: &str| pointsman.run_ok(&["orders", "list", path]);
    assert_eq!(list("/a/way"), "No orders at /a/way.");
    assert_eq!(list("/a"), "No orders at /a. /a is a folder: write `/a/` for the orders in it.");
    assert_eq!(list("/a/nope"), "No orders at /a/nope. There is no chain /a/nope.");
    assert_eq!(
        pointsman.run_ok(&["orders", "stats", "/b/"]),
        "No orders. There is no folder /b/ with chains."
    );
}

#[test]
fn orders_show_does_not_suggest_orders_move_if_the_chain_is_not_configured() {
    let mut pointsman = ServerFixture::new(CHAINS_CONFIG);
    let node = pointsman.serve();
    pointsman.run_ok(&["chains", "stop", "/a/way"]);
    pointsman.run_ok(&["orders", "add", "/a/way,1"]);
    assert!(node.stop().success());
    let kept = CHAINS_CONFIG.replace("/a/way", "/a/other");
    std::fs::write(pointsman.file_path("pointsman.yml"), kept).unwrap();
    let _node = pointsman.serve();
    let list = pointsman.run_ok(&["orders"]);
    assert!(list.contains("stranded: its chain is not configured"), "{list}");
    let shown = pointsman.run_ok(&["orders", "show", "/a/way,1"]);
    assert!(
        shown.contains("Its chain is no longer configured.") && !shown.contains("orders move"),
        "{shown}"
    );
}

#[test]
fn tasks_why_shows_the_failure_of_a_step_that_waits_for_its_retry() {
    const RETRIED_STEP_CONFIG: &str = r#"
handlers: {fails: {run: {command: ["sh", "-c", "echo no luck >&2; exit 3"]}}}
chains:
  /a: {nodes: [{id: one, handler: fails, next: done, setback: {delay: 1h, max: 3}}, {id: done, end: true}]}
"#;
    let mut pointsman = ServerFixture::new(RETRIED_STEP_CONFIG);
    let _node = pointsman.serve();
    pointsman.run_ok(&["orders", "add", "/a,1"]);
    wait_until("it is set back", || list_orders(&pointsman)[0]["setback_until"] != "");
    assert!(pointsman.run_ok(&["orders"]).contains("set back until 20"));
    let task = list_orders(&pointsman)[0]["task"]["id"].as_str().unwrap().to_owned();
    let why = pointsman.run_ok(&["tasks", "why", &task]);
    assert!(
        why.contains("\nattempt 1 failed: exit code 3") && why.contains("; will be retried at 20"),
        "{why}"
    );
}

#[test]
fn watch_tree_prints_the_order_below_its_event_and_emitted_events_below_the_order() {
    let mut pointsman = ServerFixture::new(CHAINS_CONFIG);
    let _node = pointsman.serve();
    let watch = pointsman.start_watch(&["--tree", "--since-start"]);
    let output = pointsman.run_command(&["emit", "order.placed", "--key", "o:1"]);
    let (id, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(stderr, "", "a chain is routed");
    let order = format!("Order:/a/way,{}", id.trim());
    let depth = |line: &str, what: &str| {
        line.contains(what)
            .then(|| line.split_once("  ").unwrap().1.chars().take_while(|c| *c == ' ').count())
    };
    assert_eq!(watch.lines.wait_for_match("the event", |line| depth(line, "order.placed")), 0);
    assert_eq!(watch.lines.wait_for_match("the order", |line| depth(line, &order)), 3);
    assert_eq!(watch.lines.wait_for_match("its first step", |line| depth(line, "OrderStepStarted")), 6);
    assert_eq!(watch.lines.wait_for_match("its move", |line| depth(line, "moved from one to two")), 6);
    assert_eq!(watch.lines.wait_for_match("the emitted event", |line| depth(line, "order.done")), 6);
    assert_eq!(watch.lines.wait_for_match("the end of the step", |line| depth(line, "SUCCESS  second")), 6);
}

#[test]
fn events_show_prints_the_cause_and_the_caused_events() {
    const CAUSING_HANDLERS_CONFIG: &str = r#"
handlers:
  bill: {run: {command: ["sh", "-c", "echo '{\"emit\": [{\"type\": \"invoice.made\"}]}' >> $POINTSMAN_EFFECTS"]}}
  mail: {run: {command: ["sh", "-c", "echo '{\"emit\": [{\"type\": \"mail.sent\"}]}' >> $POINTSMAN_EFFECTS"]}}
event_handlers:
  order.placed: [bill]
  invoice.made: [mail]
"#;
    let mut pointsman = ServerFixture::new(CAUSING_HANDLERS_CONFIG);
    let _node = pointsman.serve();
    let id = pointsman.run_ok(&["emit", "order.placed"]);
    let shown = || pointsman.run_ok(&["events", "show", &id]);
    wait_until("the mail is sent", || shown().contains("mail.sent"));
    let text = shown();
    assert!(text.contains("└─ ") && text.contains("   └─ "), "{text}");
    let detail = pointsman.run_json(&["events", "show", &id]);
    let made = &detail["caused"][0];
    assert_eq!(made["event"]["TYPE"], "invoice.made");
    let made_detail = pointsman.run_ok(&["events", "show", &made["event"]["eventId"].to_string()]);
    assert!(made_detail.contains(&format!("caused by  {id}, by bill_")), "{made_detail}");
    let (code, stderr) = run_for_exit_code_and_stderr(&pointsman, &["events", "show", "17"]);
    assert!(code == 1 && stderr.contains("expired"), "{stderr}");
}

#[test]
fn orders_of_a_tenant_are_selected_with_the_tenant_option() {
    let mut pointsman = ServerFixture::new(CHAINS_CONFIG);
    let _node = pointsman.serve();
    pointsman.run_ok(&["chains", "stop", "/a/way"]);
    pointsman.run_ok(&["orders", "add", "/a/way,1", "--value", "1"]);
    pointsman.run_ok(&["orders", "add", "/a/way,1", "--value", "2", "--tenant", "shop"]);
    let value = |arguments: &[&str]| {
        pointsman.run_json(&[&["orders", "show", "/a/way,1"], arguments].concat())["value"].clone()
    };
    assert_eq!((value(&[]), value(&["--tenant", "shop"])), (1.into(), 2.into()));
    pointsman.run_ok(&["orders", "set", "/a/way,1", "--tenant", "shop", "--value", "3"]);
    pointsman.run_ok(&["orders", "suspend", "/a/way,1", "--tenant", "shop"]);
    assert_eq!((value(&[]), value(&["--tenant", "shop"])), (1.into(), 3.into()));
    let stats = pointsman.run_json(&["orders", "stats", "--tenant", "shop"]);
    assert_eq!((&stats["total"], &stats["suspended"]), (&1.into(), &1.into()));
    pointsman.run_ok(&["orders", "remove", "/a/way,1", "--tenant", "shop"]);
    let (code, stderr) =
        run_for_exit_code_and_stderr(&pointsman, &["orders", "show", "/a/way,1", "--tenant", "shop"]);
    assert!(code == 1 && stderr.contains("--path /a/way,1 --tenant shop"), "{stderr}");
    assert_eq!(list_orders(&pointsman).len(), 1);
}

#[test]
fn a_repeated_add_does_not_create_a_second_order() {
    let mut pointsman = ServerFixture::new(CHAINS_CONFIG);
    let _node = pointsman.serve();
    let add = ["orders", "add", "/a/way", "--idempotency-key", "once"];
    let name = pointsman.run_ok(&add);
    wait_until("it has arrived", || list_orders(&pointsman).is_empty());
    assert_eq!(pointsman.run_ok(&add), name);
    assert!(list_orders(&pointsman).is_empty(), "nothing was added");
    let (code, stderr) = run_for_exit_code_and_stderr(&pointsman, &["orders", "add", &name]);
    assert!(code == 1 && stderr.contains("numbers of 13 digits"), "{stderr}");
    pointsman.run_ok(&["orders", "add", "/a/way,7"]);
    wait_until("it has arrived", || list_orders(&pointsman).is_empty());
    let (code, stderr) = run_for_exit_code_and_stderr(&pointsman, &["orders", "add", "/a/way,7"]);
    assert!(code == 1 && stderr.contains("has ended: finished at the node done"), "{stderr}");
    let find_ended = ["`pointsman tasks --key /a/way,7`", "`pointsman watch --since-start --path /a/way,7`"];
    assert!(
        find_ended.iter().all(|hint| stderr.contains(hint)) && !stderr.contains("orders show"),
        "{stderr}"
    );
    let (code, stderr) = run_for_exit_code_and_stderr(&pointsman, &["orders", "show", "/a/way,7"]);
    assert!(
        code == 1 && stderr.contains("there is no order /a/way,7") && !stderr.contains("tenant="),
        "{stderr}"
    );
    let (code, stderr) =
        run_for_exit_code_and_stderr(&pointsman, &["orders", "add", "/a/way,8", "--idempotency-key", "once"]);
    assert!(code == 1 && stderr.contains("another idempotency key"), "{stderr}");
}

//! Chains and orders from the command line: the example of the house, and every way to steer.

use serde_json::Value;

use crate::node::{Place, until};

/// Steps that do nothing but return, one of them an event as well.
const CHAIN: &str = r#"
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

/// The example, in a folder of its own.
fn example() -> Place {
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/publish");
    let file = |name: &str| std::fs::read_to_string(format!("{from}/{name}")).unwrap();
    let place = Place::new(&file("pointsman.yml"));
    for step in ["render.py", "deploy.py"] {
        std::fs::write(place.path(step), file(step)).unwrap();
    }
    place
}

fn words(place: &Place, words: &[&str]) -> (i32, String) {
    let output = place.run(words);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn orders(place: &Place) -> Vec<Value> {
    place.json(&["orders"])["orders"].as_array().unwrap().clone()
}

#[test]
fn the_example_publishes_an_article_after_a_setback() {
    let mut place = example();
    let _node = place.serve();
    // The pages of all who run this lie in one folder.
    let id = format!("test-{}", std::process::id());
    let order = format!("/publish/article,{id}");
    let watch = place.watch(&["-o", "json", "--since-start", "--no-tasks"]);
    let added = place.ok(&["orders", "add", &order, "--value", r#"{"title":"<Hello>","busy":1}"#]);
    assert_eq!(added, order);

    let appeared = watch.lines.json("the order", |event| event["key"] == format!("Order:{order}"));
    assert_eq!((&appeared["TYPE"], &appeared["nodeId"]), (&"FileBasedAdded".into(), &"render".into()));
    let next = |kind: &str| watch.lines.json(kind, |event| event["TYPE"] == kind && event["key"] == order);
    let changed = next("OrderNodeChanged");
    assert_eq!((&changed["fromNodeId"], &changed["nodeId"]), (&"render".into(), &"deploy".into()));
    assert_eq!(next("OrderStepEnded")["nodeTransition"]["TYPE"], "Keep");
    assert_eq!(next("OrderSetBack")["nodeId"], "deploy");
    assert_eq!(next("OrderStepEnded")["nodeTransition"]["TYPE"], "Success");
    assert_eq!(next("OrderFinished")["nodeId"], "done");
    let deployed = watch.lines.json("what the step emitted", |event| event["TYPE"] == "article.deployed");
    let page = std::fs::read_to_string(deployed["value"]["page"].as_str().unwrap()).unwrap();
    assert!(page.contains("<h1>&lt;Hello&gt;</h1>"), "{page}");
    std::fs::remove_file(deployed["value"]["page"].as_str().unwrap()).unwrap();
    assert!(orders(&place).is_empty());

    place.ok(&["orders", "add", "/publish/article,untitled", "--value", "{}"]);
    let failed = watch.lines.json("the end", |event| {
        event["TYPE"] == "OrderFinished" && event["key"] == "/publish/article,untitled"
    });
    assert_eq!(failed["nodeId"], "failed");
}

#[test]
fn an_order_is_suspended_changed_moved_and_resumed() {
    let mut place = Place::new(CHAIN);
    let _node = place.serve();
    place.ok(&["chains", "stop", "/a/way"]);
    assert_eq!(place.ok(&["orders", "add", "/a/way,1", "--value", "1"]), "/a/way,1");
    let fresh = place.ok(&["orders", "add", "/a/way", "--node", "two"]);
    assert!(fresh.starts_with("/a/way,"), "{fresh}");
    assert_eq!(orders(&place).len(), 2);

    assert_eq!(place.ok(&["orders", "suspend", "/a/way,1"]), "/a/way,1  one  suspended");
    assert_eq!(place.ok(&["orders", "move", "/a/way,1", "--node", "two"]), "/a/way,1  two  suspended");
    place.ok(&["orders", "set", "/a/way,1", "--value", r#"{"set":true}"#]);
    let shown = place.json(&["orders", "show", "/a/way,1"]);
    assert_eq!((&shown["node"], &shown["value"]["set"]), (&"two".into(), &true.into()));
    let table = place.ok(&["orders", "list", "/a/"]);
    assert!(table.starts_with("ORDER") && table.contains("suspended"), "{table}");
    let stats = place.json(&["orders", "stats", "/a/way"]);
    assert_eq!((&stats["total"], &stats["suspended"]), (&2.into(), &1.into()));

    assert_eq!(place.ok(&["orders", "remove", &fresh]), format!("{fresh}  two  removed"));
    let watch = place.watch(&["--since-start", "--return", "OrderNodeChanged,OrderFinished"]);
    assert_eq!(place.ok(&["chains", "start", "/a/way"]), "/a/way is running.");
    place.ok(&["orders", "resume", "/a/way,1"]);
    watch.lines.find("the move", |line| {
        (line.contains("OrderNodeChanged") && line.contains("one → two")).then_some(())
    });
    watch
        .lines
        .find("the end", |line| (line.contains("OrderFinished") && line.ends_with("at done")).then_some(()));
    assert_eq!(place.ok(&["orders", "list", "/a/way"]), "No orders at /a/way.");
}

#[test]
fn chains_and_nodes_are_set_in_sentences() {
    let mut place = Place::new(CHAIN);
    let _node = place.serve();
    assert_eq!(place.ok(&["chains", "stop", "/a/way"]), "/a/way is stopped.");
    assert_eq!(
        place.ok(&["chains", "node", "/a/way", "two", "next_state"]),
        "two of /a/way is set to next_state."
    );
    place.ok(&["orders", "add", "/a/way,1"]);
    let list = place.ok(&["chains"]);
    assert!(list.contains("stopped") && list.contains("one two(next_state) done"), "{list}");
    let table = place.ok(&["chains", "show", "/a/way"]);
    assert!(table.contains("next_state") && table.contains("(suspended)"), "{table}");

    let paused = place.ok(&["pause", "/a/way", "--reason", "a test"]);
    assert!(paused.starts_with("/a/way is paused.\n\nRULE") && paused.ends_with("a test"), "{paused}");
    place.ok(&["chains", "start", "/a/way"]);
    let task = orders(&place)[0]["task"]["id"].as_str().unwrap().to_owned();
    assert!(place.ok(&["tasks", "why", &task]).contains("a test"));
    assert_eq!(place.ok(&["resume", "/a/way"]), "/a/way is no longer paused.");
    assert_eq!(place.ok(&["resume", "/a/way"]), "/a/way was not paused.");
    until("it has arrived", || orders(&place).is_empty());
}

#[test]
fn what_cannot_be_done_to_an_order_is_told_with_what_can() {
    let mut place = Place::new(CHAIN);
    let _node = place.serve();
    place.ok(&["orders", "add", "/a/fault,1"]);
    until("it is suspended by its failure", || orders(&place)[0]["suspended"] == true);
    for (command, told) in [
        (&["orders", "add", "/a/fault,1"][..], "Leave the id out"),
        (&["orders", "add", "/a/fault,1794765138252000"], "Leave the id out"),
        (&["orders", "add", "/a/falt,1"], "did you mean `/a/fault`?"),
        (&["orders", "add", "/a/way,1", "--node", "three"], "`pointsman chains show /a/way`"),
        (&["orders", "show", "/a/way,9"], "`pointsman tasks --key /a/way,9`"),
        (&["orders", "move", "/a/fault,1", "--node", "oen"], "lists its nodes; did you mean `one`?"),
        (&["orders", "suspend", "/a/way,8", "/a/way,9"], "2 of 2 orders are not suspended"),
        (&["chains", "stop", "/a/wy"], "`pointsman chains`"),
        (&["pause", "/a/wy"], "`pointsman chains`"),
    ] {
        let (code, said) = words(&place, command);
        assert_eq!(code, 1, "{command:?}: {said}");
        assert!(said.contains(told), "{command:?}: {said}");
    }
    let task = place.json(&["tasks", "--handler", "fails"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    let retried = words(&place, &["tasks", "retry", &task]).1;
    assert!(retried.contains("`pointsman orders resume /a/fault,1`"), "{retried}");
    for (command, told) in [
        (&["orders", "set", "/a/fault,1"][..], "another value with --value, another time with --at"),
        (&["orders", "add", "/a/way", "--in", "-5s"], "cannot begin in the past"),
    ] {
        let (code, said) = words(&place, command);
        assert!(code == 2 && said.contains(told), "{command:?}: {said}");
    }
}

#[test]
fn how_an_order_stands_is_told_with_what_to_do() {
    let mut place = Place::new(CHAIN);
    let _node = place.serve();
    place.ok(&["orders", "add", "/a/fault,1"]);
    until("it is suspended by its failure", || orders(&place)[0]["suspended"] == true);
    place.ok(&["chains", "stop", "/a/way"]);
    place.ok(&["orders", "add", "/a/way,1"]);

    let list = place.ok(&["orders"]);
    assert!(list.contains("suspended: exit code 3"), "{list}");
    assert!(list.contains("held: the chain /a/way is stopped"), "{list}");
    assert!(list.lines().next().is_some_and(|head| head.ends_with("VALUE")), "{list}");
    let failed = place.ok(&["orders", "show", "/a/fault,1"]);
    assert!(failed.contains("fails_one_") && failed.contains("exit code 3"), "{failed}");
    assert!(failed.ends_with("`pointsman orders resume /a/fault,1` tries again"), "{failed}");

    assert_eq!(place.ok(&["orders", "move", "/a/way,1", "--node", "done"]), "/a/way,1  has arrived at done");
    let nothing = |path: &str| place.ok(&["orders", "list", path]);
    assert_eq!(nothing("/a/way"), "No orders at /a/way.");
    assert_eq!(nothing("/a"), "No orders at /a. /a is a folder: write `/a/` for the orders in it.");
    assert_eq!(nothing("/a/nope"), "No orders at /a/nope. There is no chain /a/nope.");
    assert_eq!(place.ok(&["orders", "stats", "/b/"]), "No orders. There is no folder /b/ of chains.");
}

#[test]
fn an_order_whose_chain_is_gone_is_not_told_to_move() {
    let mut place = Place::new(CHAIN);
    let node = place.serve();
    place.ok(&["chains", "stop", "/a/way"]);
    place.ok(&["orders", "add", "/a/way,1"]);
    assert!(node.stop().success());
    let kept = CHAIN.replace("/a/way", "/a/other");
    std::fs::write(place.path("pointsman.yml"), kept).unwrap();
    let _node = place.serve();
    let list = place.ok(&["orders"]);
    assert!(list.contains("stranded: its chain is gone"), "{list}");
    let shown = place.ok(&["orders", "show", "/a/way,1"]);
    assert!(shown.contains("Its chain is gone.") && !shown.contains("orders move"), "{shown}");
}

#[test]
fn a_step_that_was_set_back_tells_why_it_waits() {
    const SETBACK: &str = r#"
handlers: {fails: {run: {command: ["sh", "-c", "echo no luck >&2; exit 3"]}}}
chains:
  /a: {nodes: [{id: one, handler: fails, next: done, setback: {delay: 1h, max: 3}}, {id: done, end: true}]}
"#;
    let mut place = Place::new(SETBACK);
    let _node = place.serve();
    place.ok(&["orders", "add", "/a,1"]);
    until("it is set back", || orders(&place)[0]["setback_until"] != "");
    assert!(place.ok(&["orders"]).contains("set back until 20"));
    let task = orders(&place)[0]["task"]["id"].as_str().unwrap().to_owned();
    let why = place.ok(&["tasks", "why", &task]);
    assert!(why.contains("\nattempt 1 failed: exit code 3") && why.contains("; tried again at 20"), "{why}");
}

#[test]
fn a_tree_shows_the_order_below_its_event_and_what_its_steps_emit_below_it() {
    let mut place = Place::new(CHAIN);
    let _node = place.serve();
    let watch = place.watch(&["--tree", "--since-start"]);
    let output = place.run(&["emit", "order.placed", "--key", "o:1"]);
    let (id, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(told, "", "a chain gets it");
    let order = format!("Order:/a/way,{}", id.trim());
    let depth = |line: &str, what: &str| {
        line.contains(what)
            .then(|| line.split_once("  ").unwrap().1.chars().take_while(|c| *c == ' ').count())
    };
    assert_eq!(watch.lines.find("the event", |line| depth(line, "order.placed")), 0);
    assert_eq!(watch.lines.find("the order", |line| depth(line, &order)), 3);
    assert_eq!(watch.lines.find("its first step", |line| depth(line, "OrderStepStarted")), 6);
    assert_eq!(watch.lines.find("its way", |line| depth(line, "one → two")), 6);
    assert_eq!(watch.lines.find("what it emitted", |line| depth(line, "order.done")), 6);
    assert_eq!(watch.lines.find("the end of the step", |line| depth(line, "SUCCESS  second")), 6);
}

#[test]
fn an_event_is_shown_with_its_cause_and_the_tree_of_what_it_caused() {
    const CASCADE: &str = r#"
handlers:
  bill: {run: {command: ["sh", "-c", "echo '{\"emit\": [{\"type\": \"invoice.made\"}]}' >> $POINTSMAN_EFFECTS"]}}
  mail: {run: {command: ["sh", "-c", "echo '{\"emit\": [{\"type\": \"mail.sent\"}]}' >> $POINTSMAN_EFFECTS"]}}
event_handlers:
  order.placed: [bill]
  invoice.made: [mail]
"#;
    let mut place = Place::new(CASCADE);
    let _node = place.serve();
    let id = place.ok(&["emit", "order.placed"]);
    let shown = || place.ok(&["events", "show", &id]);
    until("the mail is sent", || shown().contains("mail.sent"));
    let text = shown();
    assert!(text.contains("└─ ") && text.contains("   └─ "), "{text}");
    let detail = place.json(&["events", "show", &id]);
    let made = &detail["caused"][0];
    assert_eq!(made["event"]["TYPE"], "invoice.made");
    let of_made = place.ok(&["events", "show", &made["event"]["eventId"].to_string()]);
    assert!(of_made.contains(&format!("caused by  {id}, by bill_")), "{of_made}");
    let (code, told) = words(&place, &["events", "show", "17"]);
    assert!(code == 1 && told.contains("forgotten"), "{told}");
}

#[test]
fn orders_of_a_tenant_are_named_with_it() {
    let mut place = Place::new(CHAIN);
    let _node = place.serve();
    place.ok(&["chains", "stop", "/a/way"]);
    place.ok(&["orders", "add", "/a/way,1", "--value", "1"]);
    place.ok(&["orders", "add", "/a/way,1", "--value", "2", "--tenant", "shop"]);
    let value =
        |more: &[&str]| place.json(&[&["orders", "show", "/a/way,1"], more].concat())["value"].clone();
    assert_eq!((value(&[]), value(&["--tenant", "shop"])), (1.into(), 2.into()));
    place.ok(&["orders", "set", "/a/way,1", "--tenant", "shop", "--value", "3"]);
    place.ok(&["orders", "suspend", "/a/way,1", "--tenant", "shop"]);
    assert_eq!((value(&[]), value(&["--tenant", "shop"])), (1.into(), 3.into()));
    let stats = place.json(&["orders", "stats", "--tenant", "shop"]);
    assert_eq!((&stats["total"], &stats["suspended"]), (&1.into(), &1.into()));
    place.ok(&["orders", "remove", "/a/way,1", "--tenant", "shop"]);
    let (code, said) = words(&place, &["orders", "show", "/a/way,1", "--tenant", "shop"]);
    assert!(code == 1 && said.contains("--path /a/way,1 --tenant shop"), "{said}");
    assert_eq!(orders(&place).len(), 1);
}

#[test]
fn a_repeated_order_is_not_run_twice() {
    let mut place = Place::new(CHAIN);
    let _node = place.serve();
    let add = ["orders", "add", "/a/way", "--idempotency-key", "once"];
    let name = place.ok(&add);
    until("it has arrived", || orders(&place).is_empty());
    assert_eq!(place.ok(&add), name);
    assert!(orders(&place).is_empty(), "nothing was added");
    let (code, said) = words(&place, &["orders", "add", &name]);
    assert!(code == 1 && said.contains("numbers of 13 digits"), "{said}");
    place.ok(&["orders", "add", "/a/way,7"]);
    until("it has arrived", || orders(&place).is_empty());
    let (code, said) = words(&place, &["orders", "add", "/a/way,7"]);
    assert!(code == 1 && said.contains("has ended: finished at the node done"), "{said}");
    let (code, said) = words(&place, &["orders", "add", "/a/way,8", "--idempotency-key", "once"]);
    assert!(code == 1 && said.contains("another idempotency key"), "{said}");
}

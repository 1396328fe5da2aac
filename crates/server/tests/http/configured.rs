use pointsman_engine::Setup;
use serde_json::json;

use crate::auth::{hex, tokens};
use crate::house::{House, sources};

const BASE: &str = "store: 'sqlite::memory:'\nserver: {listen: '127.0.0.1:0', drain: 1s}\n";
const PATH: &str = "/api/v1/config";

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_shown_with_its_places_and_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX").unwrap();
    let more =
        "handlers: {a: {run: {http: 'https://x.example/', secret: 'file:key', headers: {x-key: hunter2}}}}\n";
    let tokens = format!("auth: {{tokens: [{{name: root, role: admin, sha256: '{}'}}]}}\n", hex("root"));
    let mut house = House::at(folder.path(), &format!("{BASE}{more}{tokens}"), Setup::default()).await;
    house.token = "root".into();
    let answer = house.get(PATH).await;
    let body = answer.json();
    let file = folder.path().join("pointsman.yml").display().to_string();
    assert_eq!((&body["files"], &body["watched"]), (&json!([file]), &json!(true)));
    assert_eq!(body["reloads"], json!([]));
    assert!(body["node"].as_str().unwrap().starts_with("pointsman-"), "{body}");
    let settings = body["settings"].as_str().unwrap();
    assert!(settings.contains(&format!("listen: \"127.0.0.1:0\"  # {file}:2")), "{settings}");
    assert!(settings.contains("workers: ") && settings.contains("# default"), "{settings}");
    let text = answer.text();
    for secret in ["hunter2", "whsec_", &hex("root")] {
        assert!(!text.contains(secret), "{secret} is shown");
    }
    let warnings = body["warnings"].as_array().unwrap();
    assert!(warnings[0].as_str().unwrap().ends_with("nothing routes to the handler \"a\""), "{body}");
    assert_eq!(house.get("/api/v1/config?x=1").await.problem(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn reloads_are_remembered_with_their_faults() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::at(folder.path(), BASE, Setup::default()).await;
    let before = house.get(PATH).await.json();
    sources(
        folder.path(),
        &format!("{BASE}workers: many\nhandlers:\n  a: {{run: {{http: 1}}, secret: hunter2}}\n"),
    );
    let refused =
        house.until(PATH, |body| body["reloads"].as_array().is_some_and(|list| list.len() == 1)).await;
    let reload = &refused["reloads"][0];
    assert_eq!(
        (&reload["applied"], &reload["error"]),
        (&json!(false), &json!("the configuration has faults"))
    );
    let first = &reload["faults"][0];
    assert!(first["place"].as_str().unwrap().ends_with("pointsman.yml:3:10"), "{reload}");
    assert_eq!(first["excerpt"], "    3 | workers: many\n      |          ^");
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
    assert_eq!(refused["loaded_at"], before["loaded_at"], "what was in force stays so");

    sources(folder.path(), &format!("{BASE}handlers:\n  b: {{run: pull}}\n"));
    let applied =
        house.until(PATH, |body| body["reloads"].as_array().is_some_and(|list| list.len() == 2)).await;
    assert_eq!((&applied["reloads"][0]["applied"], &applied["reloads"][1]), (&json!(true), reload));
    assert!(applied["settings"].as_str().unwrap().contains("  b:\n    run: pull"), "{applied}");
    assert_ne!(applied["loaded_at"], before["loaded_at"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_of_all_tenants_see_it() {
    let list = [("root", "admin", None), ("ops", "operator", None), ("theirs", "admin", Some("shop"))];
    let house = House::with(&tokens(&list), Setup::default()).await;
    assert_eq!(house.call_as("root", "GET", PATH, "").await.status, 200);
    assert_eq!(house.call_as("ops", "GET", PATH, "").await.problem(), 403);
    assert_eq!(house.call_as("theirs", "GET", PATH, "").await.problem(), 403);
    assert_eq!(house.call_as("nobody", "GET", PATH, "").await.problem(), 401);
}

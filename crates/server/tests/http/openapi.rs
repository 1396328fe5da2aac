use crate::test_server::TestServer;

#[test]
fn committed_openapi_matches_the_server() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    let current = pointsman_server::openapi::document_json();
    if std::env::var_os("REFRESH").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == current,
        "crates/server/openapi.json is not what the server describes itself as; refresh it with\n\
         REFRESH=1 cargo test -p pointsman-server --test http openapi"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_and_docs_are_served_without_external_resources() {
    let server = TestServer::start().await;
    let no_token = [("authorization", "")];
    let served = server.call("GET", "/openapi.json", &no_token, b"").await;
    assert_eq!(served.text(), pointsman_server::openapi::document_json());
    assert!(served.json()["openapi"].as_str().unwrap().starts_with("3.1"));
    let page = server.call("GET", "/docs", &no_token, b"").await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    let docs = page.text();
    assert!(!docs.contains("http://") && !docs.contains("https://"));
    for path in served.json()["paths"].as_object().unwrap().keys() {
        assert!(docs.contains(path.as_str()), "{path}");
    }
}

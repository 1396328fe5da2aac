//! The files of the console as they are served. Its behaviour is tested with a browser in `console/tests`.

use crate::raw_http_client::TestResponse;
use crate::test_server::TestServer;

const BROWSER_ACCEPT_HEADER: (&str, &str) =
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8");

async fn get_without_token(test_server: &TestServer, path: &str, headers: &[(&str, &str)]) -> TestResponse {
    let mut all = vec![("authorization", "")];
    all.extend_from_slice(headers);
    test_server.call("GET", path, &all, b"").await
}

/// Finds the URL of a file, which includes the version of the files, in the HTML of the page.
fn find_versioned_file_url(page: &str, file: &str) -> String {
    let addresses = page.split('"').filter(|text| text.starts_with("/console/"));
    addresses.into_iter().find(|text| text.ends_with(file)).expect("the page names it").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_get_the_console_and_other_clients_a_plain_text() {
    let test_server = TestServer::start().await;
    let page = get_without_token(&test_server, "/", &[BROWSER_ACCEPT_HEADER]).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let policy = page.header("content-security-policy").unwrap();
    assert_eq!(
        policy,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    );
    // The page contains nothing that needs an exception from this policy.
    assert!(!page.text().contains("<style") && !page.text().contains("style="));
    assert!(!page.text().contains("http://") && !page.text().contains("https://"));
    let scripts = page.text().matches("<script").count();
    assert_eq!(scripts, page.text().matches("<script type=\"module\" src=").count());

    for headers in [&[][..], &[("accept", "*/*")], &[("accept", "application/json")]] {
        let words = get_without_token(&test_server, "/", headers).await;
        assert_eq!((words.status, words.header("content-type")), (200, Some("text/plain; charset=utf-8")));
        assert!(words.text().contains("/openapi.json"), "{words:?}");
    }
    assert_eq!(
        test_server.call("POST", "/", &[BROWSER_ACCEPT_HEADER], b"").await.checked_problem_status(),
        405
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_console_page_are_served_with_gzip_and_etags() {
    let test_server = TestServer::start().await;
    let page = get_without_token(&test_server, "/", &[BROWSER_ACCEPT_HEADER]).await.text();
    let named: Vec<&str> = page.split('"').filter(|text| text.starts_with("/console/")).collect();
    assert!(named.len() > 20, "{named:?}");
    for path in named {
        let file = get_without_token(&test_server, path, &[]).await;
        assert_eq!(file.status, 200, "{path}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
        assert!(file.header("content-encoding").is_none() && !file.body.is_empty(), "{path}");
    }
    let main = find_versioned_file_url(&page, "main.js");
    let packed = get_without_token(
        &test_server,
        &find_versioned_file_url(&page, "parts/states.js"),
        &[("accept-encoding", "gzip, br")],
    )
    .await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.body.get(..2), Some(&[0x1f, 0x8b][..]));
    let file = get_without_token(&test_server, &main, &[]).await;
    assert_eq!(file.header("content-type"), Some("text/javascript; charset=utf-8"));
    let tag = file.header("etag").unwrap();
    assert!(tag.starts_with("W/\""), "the tag is the same for the compressed file: {tag}");
    let again = get_without_token(&test_server, &main, &[("if-none-match", tag)]).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(again.header("etag"), Some(tag));
    assert_eq!(get_without_token(&test_server, &main, &[("if-none-match", "\"other\"")]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn development_files_of_the_console_are_not_served() {
    let test_server = TestServer::start().await;
    let page = get_without_token(&test_server, "/", &[BROWSER_ACCEPT_HEADER]).await.text();
    let main = find_versioned_file_url(&page, "main.js");
    let folder = main.trim_end_matches("main.js");
    for file in [
        "README.md",
        "index.html",
        "tests/test-server.yml",
        "tests/package.json",
        "vendor/preact.d.ts",
        "../Cargo.toml",
        "..%2FCargo.toml",
        "%2e%2e/Cargo.toml",
        "parts/../../Cargo.toml",
        "/etc/passwd",
        "parts",
    ] {
        assert_eq!(
            get_without_token(&test_server, &format!("{folder}{file}"), &[]).await.checked_problem_status(),
            404,
            "{file}"
        );
    }
    assert_eq!(
        get_without_token(&test_server, "/console/older/main.js", &[]).await.checked_problem_status(),
        404
    );
    assert_eq!(get_without_token(&test_server, "/console/", &[]).await.checked_problem_status(), 404);
}

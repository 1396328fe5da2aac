use crate::raw_http_client::send_request;
use crate::test_server::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_methods_and_media_types_get_problem_documents() {
    let server = TestServer::start().await;
    assert_eq!(server.get("/nothing").await.checked_problem_status(), 404);
    assert_eq!(server.get("/api/v1/tasks/").await.checked_problem_status(), 404);
    let response = server.call("DELETE", "/api/v1/events", &[], b"").await;
    assert_eq!(response.checked_problem_status(), 405);
    let allow = response.header("allow").unwrap();
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(server.call("POST", "/api/v1/events", &form, b"a=b").await.checked_problem_status(), 415);
    for path in ["/api/v1/objects/%ff", "/api/v1/objects/%zz", "/%c3%28", "/api/v1/handlers?%ff=1"] {
        assert_eq!(server.get(path).await.checked_problem_status(), 400, "{path}");
    }
    let long = format!("/api/v1/objects/{}", "x".repeat(9000));
    assert_eq!(server.get(&long).await.checked_problem_status(), 414);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_metrics_are_served() {
    let server = TestServer::start().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        let response = server.call("GET", path, &[("authorization", "")], b"").await;
        assert_eq!((response.status, &response.json()["status"]), (200, &"ok".into()), "{path}");
    }
    server.emit(r#"{"type":"a"}"#).await;
    assert!(server.get("/metrics").await.text().contains("pointsman_"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_too_large_is_refused_and_the_client_reads_why() {
    let server = TestServer::start().await;
    let body = vec![b' '; (16 << 20) + 1];
    assert_eq!(
        server.post("/api/v1/events", std::str::from_utf8(&body).unwrap()).await.checked_problem_status(),
        413
    );
    let bad = [("authorization", "Bearer wrong")];
    assert_eq!(server.call("POST", "/api/v1/events", &bad, &body).await.checked_problem_status(), 401);

    let head = server.request_head("POST", "/api/v1/events", &[("transfer-encoding", "chunked")]);
    let mut chunked = Vec::new();
    for piece in body.chunks(1 << 20) {
        chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(
        send_request(server.address, &format!("{head}\r\n"), &chunked).await.checked_problem_status(),
        413
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_too_large_body_is_refused_instead_of_100_continue() {
    let server = TestServer::start().await;
    let more = [("expect", "100-continue"), ("content-length", "99999999")];
    let head = server.request_head("POST", "/api/v1/events", &more);
    assert_eq!(send_request(server.address, &format!("{head}\r\n"), b"").await.checked_problem_status(), 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_request_heads_get_a_response() {
    let server = TestServer::start().await;
    for (head, status) in [
        ("GARBAGE\r\n\r\n".to_owned(), 400),
        ("OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(), 404),
        ("CONNECT x:80 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(), 404),
        ("GET http://x/healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(), 200),
        ("GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(70_000)), 431),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(200)), 431),
        ("POST /api/v1/events HTTP/1.1\r\ncontent-length: x\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/9.9\r\nhost: x\r\n\r\n".to_owned(), 400),
        (format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(70_000)), 431),
        // Sent behind a request that is answered.
        ("GET /livez HTTP/1.1\r\nhost: x\r\n\r\nGARBAGE\r\n\r\n".to_owned(), 200),
    ] {
        let response = send_request(server.address, &head, b"").await;
        assert_eq!(response.status, status, "{head:.40}");
        if status >= 400 {
            response.checked_problem_status();
        }
    }
    let chunked = [("transfer-encoding", "chunked"), ("content-type", "application/json")];
    let head = server.request_head("POST", "/api/v1/events", &chunked);
    assert_eq!(
        send_request(server.address, &format!("{head}\r\n"), b"zz\r\n{}\r\n").await.checked_problem_status(),
        400
    );
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_json_is_reported_as_invalid_json() {
    let server = TestServer::start().await;
    for (method, path) in [
        ("POST", "/api/v1/events"),
        ("POST", "/api/v1/orders"),
        ("POST", "/api/v1/tasks/redrive"),
        ("PUT", "/api/v1/handlers/index/pause"),
    ] {
        for body in ["{", "[{}", "{\"type\": x}", "type=a"] {
            let headers = [("content-type", "application/json")];
            let response = server.call(method, path, &headers, body.as_bytes()).await;
            assert_eq!(response.checked_problem_status(), 400, "{method} {path} {body}");
            let detail = response.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.starts_with("the body is not valid JSON: "), "{method} {path} {body}: {detail}");
        }
    }
}

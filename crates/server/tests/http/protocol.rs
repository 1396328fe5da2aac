use crate::client::send;
use crate::house::House;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_a_problem_too() {
    let house = House::new().await;
    assert_eq!(house.get("/nothing").await.problem(), 404);
    assert_eq!(house.get("/api/v1/tasks/").await.problem(), 404);
    let answer = house.call("DELETE", "/api/v1/events", &[], b"").await;
    assert_eq!(answer.problem(), 405);
    let allow = answer.header("allow").unwrap();
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(house.call("POST", "/api/v1/events", &form, b"a=b").await.problem(), 415);
    for path in ["/api/v1/objects/%ff", "/api/v1/objects/%zz", "/%c3%28", "/api/v1/handlers?%ff=1"] {
        assert_eq!(house.get(path).await.problem(), 400, "{path}");
    }
    let long = format!("/api/v1/objects/{}", "x".repeat(9000));
    assert_eq!(house.get(&long).await.problem(), 414);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_metrics() {
    let house = House::new().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        let answer = house.call("GET", path, &[("authorization", "")], b"").await;
        assert_eq!((answer.status, &answer.json()["status"]), (200, &"ok".into()), "{path}");
    }
    house.emit(r#"{"type":"a"}"#).await;
    assert!(house.get("/metrics").await.text().contains("pointsman_"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_too_large_is_refused_and_the_client_reads_why() {
    let house = House::new().await;
    let body = vec![b' '; (16 << 20) + 1];
    assert_eq!(house.post("/api/v1/events", std::str::from_utf8(&body).unwrap()).await.problem(), 413);
    let bad = [("authorization", "Bearer wrong")];
    assert_eq!(house.call("POST", "/api/v1/events", &bad, &body).await.problem(), 401);

    let head = house.head("POST", "/api/v1/events", &[("transfer-encoding", "chunked")]);
    let mut chunked = Vec::new();
    for piece in body.chunks(1 << 20) {
        chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(send(house.address, &format!("{head}\r\n"), &chunked).await.problem(), 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_leave_to_send_gets_its_answer_at_once() {
    let house = House::new().await;
    let more = [("expect", "100-continue"), ("content-length", "99999999")];
    let head = house.head("POST", "/api/v1/events", &more);
    assert_eq!(send(house.address, &format!("{head}\r\n"), b"").await.problem(), 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbled_heads_get_an_answer() {
    let house = House::new().await;
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
        let answer = send(house.address, &head, b"").await;
        assert_eq!(answer.status, status, "{head:.40}");
        if status >= 400 {
            answer.problem();
        }
    }
    let chunked = [("transfer-encoding", "chunked"), ("content-type", "application/json")];
    let head = house.head("POST", "/api/v1/events", &chunked);
    assert_eq!(send(house.address, &format!("{head}\r\n"), b"zz\r\n{}\r\n").await.problem(), 400);
    assert_eq!(house.get("/healthz").await.status, 200);
}

use std::error::Error;

use pointsman::StartError;
use pointsman::http::{BadHttpTarget, HttpTarget, NetworkAccess};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Answers one request with 204, and returns it.
async fn answer_one_request(listener: TcpListener) -> String {
    let (mut connection, _) = listener.accept().await.unwrap();
    let mut request = vec![];
    while !request.ends_with(b"}") {
        connection.read_buf(&mut request).await.unwrap();
    }
    connection.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await.unwrap();
    String::from_utf8(request).unwrap()
}

#[tokio::test]
async fn an_http_handler_is_sent_the_event() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/index", listener.local_addr().unwrap());
    let request = tokio::spawn(answer_one_request(listener));
    let target = HttpTarget {
        network_access: NetworkAccess { allows_loopback: true, ..NetworkAccess::default() },
        ..HttpTarget::new(&url).unwrap()
    };
    let bus = Bus::builder("sqlite::memory:")
        .http_handler("index", target)
        .retries(0)
        .on::<RecordPublished>("index")
        .start()
        .await
        .unwrap();
    let emitted = bus.emit(RecordPublished::new(1)).await.unwrap();
    let task = wait_until_only_task_finished(&bus, &emitted).await;
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Done);
    let request = request.await.unwrap();
    assert!(request.starts_with("POST /index HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nce-type: record.published\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"id\":1,\"title\":\"number 1\"}"), "{request}");
    bus.stop().await;
}

#[tokio::test]
async fn an_invalid_http_target_is_refused() {
    assert!(matches!(HttpTarget::new("/index"), Err(BadHttpTarget::InvalidUrl(_))));
    let target = HttpTarget::new("ftp://host/").unwrap();
    let error = Bus::builder("sqlite::memory:").http_handler("index", target).start().await.unwrap_err();
    assert!(matches!(error, StartError::InvalidHttpTarget { .. }), "{error}");
    assert_eq!(error.to_string(), "the target of the handler index is invalid");
    assert!(error.source().unwrap().to_string().contains("http:// or https://"));
}

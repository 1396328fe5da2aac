//! A proxy between a worker and the server that drops one response.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// Starts a proxy before a server and returns its address. It drops the response to the first request whose path ends in
/// `path_end`, and closes the connection.
pub(crate) fn start_proxy_dropping_one_response(server: &str, path_end: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server.to_owned();
    std::thread::spawn(move || {
        let mut has_dropped = false;
        for mut client in listener.incoming().map_while(Result::ok) {
            let Ok(request) = read_request(&mut client) else { continue };
            let first = request.lines().next().unwrap_or_default();
            let drops = !has_dropped
                && first.split(' ').nth(1).is_some_and(|request_path| request_path.ends_with(path_end));
            let Ok(response) = forward_request(&server, &request) else { continue };
            if drops {
                has_dropped = true;
                let _ = client.shutdown(Shutdown::Both);
            } else {
                let _ = client.write_all(&response);
            }
        }
    });
    address
}

/// Reads a complete request: its head and the body.
fn read_request(client: &mut TcpStream) -> std::io::Result<String> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
            });
            if body.len() >= length.unwrap_or(0) {
                return Ok(text);
            }
        }
        match client.read(&mut chunk)? {
            0 => return Ok(text),
            read => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}

/// Forwards a request and reads the response up to the end of the connection, which the client asks to close.
fn forward_request(server: &str, request: &str) -> std::io::Result<Vec<u8>> {
    let mut upstream = TcpStream::connect(server)?;
    upstream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    upstream.read_to_end(&mut response)?;
    Ok(response)
}

//! Something between a worker and the server that loses an answer, once.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// Stands before a server and loses its first answer to a request whose path ends so. Answers where it listens.
pub(crate) fn start_before(server: &str, path: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server.to_owned();
    std::thread::spawn(move || {
        let mut lost = false;
        for mut client in listener.incoming().map_while(Result::ok) {
            let Ok(request) = request(&mut client) else { continue };
            let first = request.lines().next().unwrap_or_default();
            let loses = !lost && first.split(' ').nth(1).is_some_and(|asked| asked.ends_with(path));
            let Ok(answer) = answer(&server, &request) else { continue };
            if loses {
                lost = true;
                let _ = client.shutdown(Shutdown::Both);
            } else {
                let _ = client.write_all(&answer);
            }
        }
    });
    address
}

/// A whole request: its head, and as much of a body as that says.
fn request(client: &mut TcpStream) -> std::io::Result<String> {
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

/// The client asks for its connection to be closed after the answer, so that all of it is up to the end.
fn answer(server: &str, request: &str) -> std::io::Result<Vec<u8>> {
    let mut upstream = TcpStream::connect(server)?;
    upstream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer)?;
    Ok(answer)
}

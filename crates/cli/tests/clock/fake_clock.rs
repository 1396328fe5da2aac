//! Servers with a fake clock, which a file sets; all other processes use the real time.

use std::io::{Read, Write};
use std::net::TcpStream;

use pointsman_testing::remove_stale_faketime_files;

use crate::test_server::{PointsmanServerProcess, ServerFixture};

/// Starts the server with its clock offset by the content of the file `clock` (`+26h`, `-40d`). Its monotonic clock is
/// the machine's.
const FAKETIME_SCRIPT: &str = r#"
lib=$(faketime -f +0s sh -c 'echo $LD_PRELOAD') || exit
rm -f "/dev/shm/sem.faketime_sem_$$" "/dev/shm/faketime_shm_$$"
exec env LD_PRELOAD="$lib" FAKETIME_TIMESTAMP_FILE="$PWD/clock" FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 \
    NO_FAKE_STAT=1 "$@" 2>>server.log
"#;

/// Sets the server's clock. The file is replaced atomically.
pub(crate) fn set_fake_clock_offset(pointsman: &ServerFixture, offset: &str) {
    let (draft, file) = (pointsman.file_path("clock.new"), pointsman.file_path("clock"));
    std::fs::write(&draft, offset).unwrap();
    std::fs::rename(draft, file).unwrap();
}

/// Starts a server with a clock offset.
pub(crate) fn serve_with_clock_offset(pointsman: &mut ServerFixture, offset: &str) -> PointsmanServerProcess {
    set_fake_clock_offset(pointsman, offset);
    remove_stale_faketime_files();
    pointsman.serve_through("sh", &["-c", FAKETIME_SCRIPT, "sh"])
}

/// Sends a GET, and returns the status and the full response.
pub(crate) fn send_get(pointsman: &ServerFixture, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(pointsman.address()).unwrap();
    let (host, token) = (pointsman.address(), pointsman.token());
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let status = response.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {response}")), response)
}

/// Sends a GET that must return 200, and parses the body.
pub(crate) fn get_json(pointsman: &ServerFixture, path: &str) -> serde_json::Value {
    let (status, response) = send_get(pointsman, path);
    assert_eq!(status, 200, "{response}");
    let body = response.split_once("\r\n\r\n").map(|(_, body)| body);
    serde_json::from_str(body.unwrap_or_default()).unwrap_or_else(|error| panic!("{error}: {response}"))
}

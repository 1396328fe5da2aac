//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::bail;
use uuid::Uuid;

/// The range of the ports of servers: below the ports that Linux assigns to outgoing connections, so that no outgoing
/// connection can take the port of a server that is being restarted.
const PORT_RANGE: std::ops::Range<u16> = 20_000..32_000;

/// The number of random ports that are tried.
const MAX_BIND_TRIES: usize = 100;

/// Binds a listener to a free port.
pub(crate) fn listen_on_free_port() -> anyhow::Result<TcpListener> {
    let port_count = u128::from(PORT_RANGE.end - PORT_RANGE.start);
    for _ in 0..MAX_BIND_TRIES {
        let port = PORT_RANGE.start + u16::try_from(Uuid::new_v4().as_u128() % port_count)?;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok(listener);
        }
    }
    bail!("found no free port on 127.0.0.1 in {MAX_BIND_TRIES} tries from {PORT_RANGE:?}")
}

/// Returns a port that was free a moment ago.
pub(crate) fn find_free_port() -> anyhow::Result<u16> {
    Ok(listen_on_free_port()?.local_addr()?.port())
}

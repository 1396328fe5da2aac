//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::bail;
use uuid::Uuid;

/// Below the ports that Linux gives to outgoing connections: a server that is started again finds its port as it
/// left it, and no client has got it meanwhile.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

const TRIES: usize = 100;

/// Listens on a free port.
pub(crate) fn listen() -> anyhow::Result<TcpListener> {
    let many = u128::from(PORTS.end - PORTS.start);
    for _ in 0..TRIES {
        let port = PORTS.start + u16::try_from(Uuid::new_v4().as_u128() % many)?;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok(listener);
        }
    }
    bail!("found no free port on 127.0.0.1 in {TRIES} tries from {PORTS:?}")
}

/// A port that was free just now.
pub(crate) fn free() -> anyhow::Result<u16> {
    Ok(listen()?.local_addr()?.port())
}

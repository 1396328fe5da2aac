//! Which connections are admitted.
//!
//! ```text
//!  max_connections = ordinary + reserve
//!
//!  a new connection ─▶ ordinary, within the shares: all, without a valid token, from its address
//!          │ a share is used up
//!          ├─▶ ordinary, in place of the connection without a valid token that has been idle longest
//!          │ there is none that has been idle for a moment
//!          ├─▶ reserve: it is served one request if that is a health check or an emit, else it gets 503
//!          │ the reserve is used up
//!          ├─▶ in place of one that has not been idle for a moment, in a flood of connections
//!          │ all others have valid tokens
//!          └─▶ refused with 503 before its request is read
//! ```
//!
//! A connection counts as unauthenticated until a request on it carries a valid token. One of the reserve then becomes
//! an ordinary one, in place of one without a valid token if it must, however short that has been idle. Each request moves its connection
//! behind all others: the first one in the order is the one that has been idle longest.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::ServerLimits;
use crate::metrics::{HttpMetrics, OpenConnections};

/// At most this part of all connections is the reserve.
const MAX_RESERVE_PART: usize = 4;

/// A client has this long to send its request before its connection is one that is idle.
const GRACE: Duration = Duration::from_secs(1);

/// The shares of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    ordinary: usize,
    unauthenticated: usize,
    per_address: usize,
    reserve: usize,
}

impl Shares {
    fn new(max_connections: usize, limits: &ServerLimits) -> Self {
        let reserve = limits.reserve.min(max_connections / MAX_RESERVE_PART);
        Self {
            ordinary: max_connections - reserve,
            unauthenticated: limits.anonymous,
            per_address: limits.per_address,
            reserve,
        }
    }
}

/// Admits connections within their shares.
#[derive(Debug)]
pub(crate) struct Admission {
    shares: Shares,
    open: Mutex<ConnectionTable>,
    metrics: Arc<HttpMetrics>,
}

/// What a connection may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Ordinary,
    /// One health check or emit.
    Reserve,
}

type ConnectionId = u64;

/// Unauthenticated connections in the order of their last activity.
type ActivityOrder = BTreeSet<(u64, ConnectionId)>;

/// All open connections.
#[derive(Debug)]
struct ConnectionTable {
    connections: HashMap<ConnectionId, Entry>,
    ordinary: usize,
    reserve: usize,
    /// Unauthenticated ordinary connections, and those of the reserve.
    idle: ActivityOrder,
    idle_in_reserve: ActivityOrder,
    addresses: HashMap<IpAddr, AddressConnections>,
    /// Numbers connections and their activities.
    counter: u64,
    metrics: Arc<HttpMetrics>,
}

/// A connection that can be closed for another.
#[derive(Clone, Copy, Debug)]
struct Idle {
    id: ConnectionId,
    /// Its client has had a moment to send a request.
    for_long: bool,
}

/// Ordinary connections from one address.
#[derive(Debug, Default)]
struct AddressConnections {
    count: usize,
    idle: ActivityOrder,
}

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    slot: Slot,
    authenticated: bool,
    activity: u64,
    active_at: Instant,
    close: CancellationToken,
}

/// An admitted connection, as its requests know it.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    admission: Arc<Admission>,
    id: ConnectionId,
    address: IpAddr,
    /// Cancelled when the connection has to make room for another.
    close: CancellationToken,
    /// Requests that have begun and are not answered.
    in_progress: Arc<AtomicUsize>,
}

/// A request in progress, until this is dropped.
#[derive(Debug)]
pub(super) struct RequestInProgress(Arc<AtomicUsize>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An admitted connection, as its owner knows it: it is open until this is dropped.
#[derive(Debug)]
pub(super) struct AdmittedConnection {
    pub(super) connection: Connection,
    at: Instant,
}

impl AdmittedConnection {
    /// Whether its client may still be about to send its first request.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        now.duration_since(self.at) < GRACE
    }
}

impl Admission {
    pub(crate) fn new(max_connections: usize, limits: &ServerLimits, metrics: Arc<HttpMetrics>) -> Arc<Self> {
        let open = Mutex::new(ConnectionTable::new(metrics.clone()));
        Arc::new(Self { shares: Shares::new(max_connections, limits), open, metrics })
    }

    /// Admits a connection, closing another one if it must. Nothing: there is no room at all.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<AdmittedConnection> {
        let address = network(address);
        let mut open = self.open();
        let Some(slot) = open.find_slot(&self.shares, address, now) else {
            self.metrics.refused_connection();
            return None;
        };
        let close = CancellationToken::new();
        let id = open.insert(address, slot, close.clone(), now);
        let (admission, in_progress) = (self.clone(), Arc::default());
        let connection = Connection { admission, id, address, close, in_progress };
        Some(AdmittedConnection { connection, at: now })
    }

    /// Counts a request that was refused because its connection is one of the reserve.
    pub(crate) fn count_refusal(&self) {
        self.metrics.refused_connection();
    }

    pub(crate) fn count(&self) -> OpenConnections {
        let open = self.open();
        let unauthenticated = open.idle.len();
        OpenConnections {
            authenticated: open.ordinary - unauthenticated,
            unauthenticated,
            reserve: open.reserve,
        }
    }

    fn open(&self) -> MutexGuard<'_, ConnectionTable> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AdmittedConnection {
    fn drop(&mut self) {
        self.connection.admission.open().remove(self.connection.id);
    }
}

impl Connection {
    /// The address that its failures are counted for.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Records a request. `valid` says whether its token is; nothing if it carries none, which changes nothing. The
    /// answer says what the connection may be used for; one that had to make room before its request came is as good as
    /// one of the reserve.
    pub(crate) fn record_request(&self, valid: Option<bool>, now: Instant) -> Slot {
        let Admission { shares, .. } = &*self.admission;
        self.admission.open().record_request(shares, self.id, valid, now).unwrap_or(Slot::Reserve)
    }

    /// Waits until it has to make room for another.
    pub(super) async fn wait_closed(&self) {
        self.close.cancelled().await;
    }

    pub(super) fn begin_request(&self) -> RequestInProgress {
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        RequestInProgress(self.in_progress.clone())
    }

    pub(super) fn has_request_in_progress(&self) -> bool {
        self.in_progress.load(Ordering::Relaxed) > 0
    }
}

impl ConnectionTable {
    fn new(metrics: Arc<HttpMetrics>) -> Self {
        Self {
            connections: HashMap::new(),
            ordinary: 0,
            reserve: 0,
            idle: ActivityOrder::new(),
            idle_in_reserve: ActivityOrder::new(),
            addresses: HashMap::new(),
            counter: 0,
            metrics,
        }
    }

    /// The connections one of which has to make room for another ordinary one from this address; nothing if there is
    /// room.
    fn contenders(&self, shares: &Shares, address: IpAddr) -> Option<&ActivityOrder> {
        match self.addresses.get(&address) {
            Some(of_address) if of_address.count >= shares.per_address => Some(&of_address.idle),
            _ if self.ordinary >= shares.ordinary => Some(&self.idle),
            _ => None,
        }
    }

    /// Finds a place for a connection from this address.
    fn find_slot(&mut self, shares: &Shares, address: IpAddr, now: Instant) -> Option<Slot> {
        let contenders = self.contenders(shares, address);
        let contenders =
            contenders.or_else(|| (self.idle.len() >= shares.unauthenticated).then_some(&self.idle));
        let Some(contenders) = contenders else { return Some(Slot::Ordinary) };
        let ordinary = self.idle_longest(contenders, now);
        let reserve = self.idle_longest(&self.idle_in_reserve, now);
        let (victim, slot) = match (ordinary, reserve) {
            (Some(Idle { id, for_long: true }), _) => (id, Slot::Ordinary),
            _ if self.reserve < shares.reserve => return Some(Slot::Reserve),
            (_, Some(Idle { id, for_long: true })) => (id, Slot::Reserve),
            (Some(Idle { id, .. }), _) => (id, Slot::Ordinary),
            (None, Some(Idle { id, .. })) => (id, Slot::Reserve),
            (None, None) => return None,
        };
        self.evict(victim);
        Some(slot)
    }

    fn idle_longest(&self, idle: &ActivityOrder, now: Instant) -> Option<Idle> {
        let (_, id) = *idle.first()?;
        let entry = self.connections.get(&id)?;
        Some(Idle { id, for_long: now.duration_since(entry.active_at) >= GRACE })
    }

    fn evict(&mut self, id: ConnectionId) {
        if let Some(entry) = self.remove(id) {
            entry.close.cancel();
            self.metrics.evicted_connection();
        }
    }

    fn insert(
        &mut self,
        address: IpAddr,
        slot: Slot,
        close: CancellationToken,
        now: Instant,
    ) -> ConnectionId {
        self.counter += 1;
        let id = self.counter;
        self.add(id, Entry { address, slot, authenticated: false, activity: id, active_at: now, close });
        id
    }

    fn add(&mut self, id: ConnectionId, entry: Entry) {
        match entry.slot {
            Slot::Ordinary => {
                self.ordinary += 1;
                self.addresses.entry(entry.address).or_default().count += 1;
            }
            Slot::Reserve => self.reserve += 1,
        }
        self.index(id, &entry);
        self.connections.insert(id, entry);
    }

    fn remove(&mut self, id: ConnectionId) -> Option<Entry> {
        let entry = self.connections.remove(&id)?;
        self.unindex(id, &entry);
        match entry.slot {
            Slot::Ordinary => {
                self.ordinary -= 1;
                if let Some(of_address) = self.addresses.get_mut(&entry.address) {
                    of_address.count -= 1;
                    if of_address.count == 0 {
                        self.addresses.remove(&entry.address);
                    }
                }
            }
            Slot::Reserve => self.reserve -= 1,
        }
        Some(entry)
    }

    /// Moves a connection behind all others. One of the reserve with a valid token becomes an ordinary one if it can.
    fn record_request(
        &mut self,
        shares: &Shares,
        id: ConnectionId,
        valid: Option<bool>,
        now: Instant,
    ) -> Option<Slot> {
        let mut entry = self.remove(id)?;
        self.counter += 1;
        (entry.activity, entry.active_at) = (self.counter, now);
        entry.authenticated = valid.unwrap_or(entry.authenticated);
        if entry.slot == Slot::Reserve
            && entry.authenticated
            && self.free_ordinary_slot(shares, entry.address)
        {
            entry.slot = Slot::Ordinary;
        }
        let slot = entry.slot;
        self.add(id, entry);
        Some(slot)
    }

    /// Makes room for an ordinary connection with a valid token, for which any other without one has to go.
    fn free_ordinary_slot(&mut self, shares: &Shares, address: IpAddr) -> bool {
        let Some(contenders) = self.contenders(shares, address) else { return true };
        let Some((_, victim)) = contenders.first().copied() else { return false };
        self.evict(victim);
        true
    }

    /// Adds a connection without a valid token to those that can be closed.
    fn index(&mut self, id: ConnectionId, entry: &Entry) {
        if entry.authenticated {
            return;
        }
        let place = (entry.activity, id);
        match entry.slot {
            Slot::Ordinary => {
                self.idle.insert(place);
                self.addresses.entry(entry.address).or_default().idle.insert(place);
            }
            Slot::Reserve => {
                self.idle_in_reserve.insert(place);
            }
        }
    }

    fn unindex(&mut self, id: ConnectionId, entry: &Entry) {
        let place = (entry.activity, id);
        match entry.slot {
            Slot::Ordinary => {
                self.idle.remove(&place);
                if let Some(of_address) = self.addresses.get_mut(&entry.address) {
                    of_address.idle.remove(&place);
                }
            }
            Slot::Reserve => {
                self.idle_in_reserve.remove(&place);
            }
        }
    }
}

/// The address that a client is known by: with IPv6 its /64 network, all of which one client can have.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests;

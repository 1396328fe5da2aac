//! Decides which connections are admitted.
//!
//! ```text
//!  max_connections = ordinary + reserve
//!
//!  a new connection ─▶ ordinary, within the shares: all, without a valid token, from its address
//!          │ a share is used up
//!          ├─▶ ordinary; evicts the connection without a valid token that has been idle longest
//!          │ none has been idle for the grace period
//!          ├─▶ reserve: it is served one request if that is a health check or an emit, else it gets 503
//!          │ the reserve is used up
//!          ├─▶ ordinary or reserve; evicts a connection within its grace period, as in a flood of connections
//!          │ there is no reserve, and all others have valid tokens
//!          └─▶ refused with 503 before its request is read
//! ```
//!
//! A connection counts as unauthenticated until a request on it carries a valid token. A connection of the reserve then
//! becomes an ordinary one; if needed, it evicts one without a valid token, even within the grace period. Each request
//! moves its connection to the end of the activity order: the first one has been idle longest.
//!
//! Each token has a share of the ordinary connections. Beyond it, connections of the token stay unauthenticated: they
//! are served like those of the reserve and can be evicted.
//!
//! Emits on the reserve are not evicted, so they get only a part of it. The rest is for health checks, whose
//! connections can be evicted at any time.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::{Identity, TokenHash};
use crate::config::ServerLimits;
use crate::metrics::{HttpMetrics, OpenConnectionCounts};

/// The reserve has at most the number of all connections divided by this number.
const MAX_RESERVE_DIVISOR: usize = 4;

/// The size of the reserve divided by this number, at least one connection, is for health checks only.
const HEALTH_CHECK_RESERVE_DIVISOR: usize = 4;

/// How long a client has to send a request before its connection counts as idle.
const IDLE_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// The shares of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConnectionLimits {
    max_ordinary: usize,
    max_unauthenticated: usize,
    max_per_address: usize,
    /// Ordinary connections of one token.
    max_per_token: usize,
    max_reserve: usize,
    /// Connections of the reserve that serve an emit.
    max_reserve_emits: usize,
    /// Connections of the reserve that serve an emit of one token.
    max_reserve_emits_per_token: usize,
}

impl ConnectionLimits {
    fn new(max_connections: usize, limits: &ServerLimits) -> Self {
        let max_reserve = limits.reserved_connections.min(max_connections / MAX_RESERVE_DIVISOR);
        let max_ordinary = max_connections - max_reserve;
        let max_reserve_emits = max_reserve - max_reserve.div_ceil(HEALTH_CHECK_RESERVE_DIVISOR);
        Self {
            max_ordinary,
            max_unauthenticated: limits.anonymous_connections,
            max_per_address: limits.connections_per_address,
            max_per_token: limits.connections_per_client.unwrap_or(max_ordinary.div_ceil(2)),
            max_reserve,
            max_reserve_emits,
            max_reserve_emits_per_token: max_reserve_emits.div_ceil(2),
        }
    }
}

/// Admits connections within their shares.
#[derive(Debug)]
pub(crate) struct ConnectionAdmission {
    limits: ConnectionLimits,
    connection_table: Mutex<ConnectionTable>,
    metrics: Arc<HttpMetrics>,
}

/// The kind of slot that a connection occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionSlot {
    Ordinary,
    /// A connection of the reserve, which is closed after one health check or emit.
    Reserve,
}

/// The purpose of a request, as far as the reserve is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestPurpose {
    HealthCheck,
    /// An emit with a producer's token.
    Emit,
    Other,
}

/// Whether a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestAdmission {
    Served,
    /// Served as the last request of its connection.
    ServedThenClosed,
    Refused(ConnectionShortage),
}

/// The reason why a request is refused: the share of connections that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionShortage {
    /// All ordinary connections are in use, or all those that the client's address may have.
    OrdinaryConnectionsInUse,
    /// The token has as many ordinary connections as it may have.
    TokenShareUsedUp,
    /// As many emits as allowed are being served on connections of the reserve.
    TooManyReserveEmits,
}

type ConnectionId = u64;

/// Unauthenticated connections in the order of their last activity.
type ActivityOrder = BTreeSet<(u64, ConnectionId)>;

/// All open connections.
#[derive(Debug)]
struct ConnectionTable {
    connections: HashMap<ConnectionId, ConnectionEntry>,
    ordinary_count: usize,
    reserve_count: usize,
    /// Ordinary connections that can be evicted.
    evictable_ordinary: ActivityOrder,
    /// Connections of the reserve that can be evicted.
    evictable_in_reserve: ActivityOrder,
    connections_by_address: HashMap<IpAddr, AddressConnections>,
    connections_by_token: HashMap<TokenHash, TokenConnections>,
    /// Emits that are served on the reserve.
    reserve_emit_count: usize,
    /// The number of the last activity. A new connection or request gets the next number.
    last_activity_number: u64,
    metrics: Arc<HttpMetrics>,
}

/// A connection that can be closed for a new one.
#[derive(Clone, Copy, Debug)]
struct EvictionCandidate {
    id: ConnectionId,
    /// Whether the client has had the whole grace period to send a request.
    is_past_grace_period: bool,
}

/// Ordinary connections from one address.
#[derive(Debug, Default)]
struct AddressConnections {
    ordinary_count: usize,
    evictable: ActivityOrder,
}

/// Connections that are counted for one token.
#[derive(Clone, Copy, Debug, Default)]
struct TokenConnections {
    ordinary_count: usize,
    reserve_count: usize,
}

#[derive(Debug)]
struct ConnectionEntry {
    address: IpAddr,
    slot: ConnectionSlot,
    /// The token that the connection is counted for, if any. Connections that are counted for a token are not evicted.
    counted_token: Option<TokenHash>,
    activity_number: u64,
    last_active_at: Instant,
    eviction_signal: CancellationToken,
}

/// The handle of an admitted connection that its requests carry.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionHandle {
    admission: Arc<ConnectionAdmission>,
    id: ConnectionId,
    address: IpAddr,
    /// Cancelled when the connection is evicted.
    eviction_signal: CancellationToken,
    /// Requests that have begun and have no response yet.
    requests_in_progress: Arc<AtomicUsize>,
}

/// Counts a request of a connection as in progress until this is dropped.
#[derive(Debug)]
pub(super) struct RequestInProgressGuard(Arc<AtomicUsize>);

impl Drop for RequestInProgressGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Owns an admitted connection: it counts as open until this is dropped.
#[derive(Debug)]
pub(super) struct AdmittedConnection {
    pub(super) connection: ConnectionHandle,
    admitted_at: Instant,
}

impl AdmittedConnection {
    /// Whether the connection was admitted less than the grace period ago, so that its first request may still arrive.
    pub(super) fn is_within_grace_period(&self, now: Instant) -> bool {
        now.duration_since(self.admitted_at) < IDLE_GRACE_PERIOD
    }
}

impl ConnectionAdmission {
    pub(crate) fn new(max_connections: usize, limits: &ServerLimits, metrics: Arc<HttpMetrics>) -> Arc<Self> {
        let table = Mutex::new(ConnectionTable::new(metrics.clone()));
        Arc::new(Self {
            limits: ConnectionLimits::new(max_connections, limits),
            connection_table: table,
            metrics,
        })
    }

    /// Admits a connection, evicting another connection if needed. Returns `None` if all connections are in use and
    /// none can be evicted.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<AdmittedConnection> {
        let address = client_network(address);
        let mut table = self.lock_table();
        let Some(slot) = table.find_or_free_slot(&self.limits, address, now) else {
            self.metrics.count_refused_connection();
            return None;
        };
        let eviction_signal = CancellationToken::new();
        let id = table.insert_new_connection(address, slot, eviction_signal.clone(), now);
        let (admission, requests_in_progress) = (self.clone(), Arc::default());
        let connection = ConnectionHandle { admission, id, address, eviction_signal, requests_in_progress };
        Some(AdmittedConnection { connection, admitted_at: now })
    }

    pub(crate) fn count_open_connections(&self) -> OpenConnectionCounts {
        let table = self.lock_table();
        let unauthenticated = table.evictable_ordinary.len();
        OpenConnectionCounts {
            authenticated: table.ordinary_count - unauthenticated,
            unauthenticated,
            in_reserve: table.reserve_count,
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.connection_table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AdmittedConnection {
    fn drop(&mut self) {
        self.connection.admission.lock_table().remove_entry(self.connection.id);
    }
}

impl ConnectionHandle {
    /// The client address that failed authentications on this connection are counted for.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Records a request and decides whether it is served. A request without a token leaves its connection with the
    /// token that it is counted for. A connection that was evicted before its request arrived is treated like
    /// one of the reserve.
    pub(crate) fn admit_request(
        &self,
        identity: &Identity,
        purpose: RequestPurpose,
        now: Instant,
    ) -> RequestAdmission {
        let ConnectionAdmission { limits, metrics, .. } = &*self.admission;
        let recorded = self.admission.lock_table().admit_request(limits, self.id, identity, purpose, now);
        let admission = recorded.unwrap_or_else(|| {
            RequestAdmission::decide_for_reserve_slot(purpose, ConnectionShortage::OrdinaryConnectionsInUse)
        });
        if matches!(admission, RequestAdmission::Refused(_)) {
            metrics.count_refused_connection();
        }
        admission
    }

    /// Waits until the connection is evicted.
    pub(super) async fn wait_until_evicted(&self) {
        self.eviction_signal.cancelled().await;
    }

    pub(super) fn begin_request(&self) -> RequestInProgressGuard {
        self.requests_in_progress.fetch_add(1, Ordering::Relaxed);
        RequestInProgressGuard(self.requests_in_progress.clone())
    }

    pub(super) fn has_request_in_progress(&self) -> bool {
        self.requests_in_progress.load(Ordering::Relaxed) > 0
    }
}

impl RequestAdmission {
    /// Serves health checks and emits, and refuses other requests for this reason.
    fn decide_for_reserve_slot(purpose: RequestPurpose, shortage: ConnectionShortage) -> Self {
        match purpose {
            RequestPurpose::HealthCheck | RequestPurpose::Emit => Self::ServedThenClosed,
            RequestPurpose::Other => Self::Refused(shortage),
        }
    }
}

impl ConnectionTable {
    fn new(metrics: Arc<HttpMetrics>) -> Self {
        Self {
            connections: HashMap::new(),
            ordinary_count: 0,
            reserve_count: 0,
            evictable_ordinary: ActivityOrder::new(),
            evictable_in_reserve: ActivityOrder::new(),
            connections_by_address: HashMap::new(),
            connections_by_token: HashMap::new(),
            reserve_emit_count: 0,
            last_activity_number: 0,
            metrics,
        }
    }

    /// The connections of which one must be evicted before this address can have another ordinary connection; `None` if
    /// a slot is free.
    fn select_evictable_connections(
        &self,
        limits: &ConnectionLimits,
        address: IpAddr,
    ) -> Option<&ActivityOrder> {
        match self.connections_by_address.get(&address) {
            Some(address_connections) if address_connections.ordinary_count >= limits.max_per_address => {
                Some(&address_connections.evictable)
            }
            _ if self.ordinary_count >= limits.max_ordinary => Some(&self.evictable_ordinary),
            _ => None,
        }
    }

    /// Finds a slot for a connection from this address, evicting another connection if needed.
    fn find_or_free_slot(
        &mut self,
        limits: &ConnectionLimits,
        address: IpAddr,
        now: Instant,
    ) -> Option<ConnectionSlot> {
        let evictable_connections = self.select_evictable_connections(limits, address);
        let evictable_connections = evictable_connections.or_else(|| {
            (self.evictable_ordinary.len() >= limits.max_unauthenticated).then_some(&self.evictable_ordinary)
        });
        let Some(evictable_connections) = evictable_connections else {
            return Some(ConnectionSlot::Ordinary);
        };
        let ordinary = self.find_longest_idle(evictable_connections, now);
        let reserve = self.find_longest_idle(&self.evictable_in_reserve, now);
        let (victim, slot) = match (ordinary, reserve) {
            (Some(EvictionCandidate { id, is_past_grace_period: true }), _) => (id, ConnectionSlot::Ordinary),
            _ if self.reserve_count < limits.max_reserve => return Some(ConnectionSlot::Reserve),
            (_, Some(EvictionCandidate { id, is_past_grace_period: true })) => (id, ConnectionSlot::Reserve),
            (Some(EvictionCandidate { id, .. }), _) => (id, ConnectionSlot::Ordinary),
            (None, Some(EvictionCandidate { id, .. })) => (id, ConnectionSlot::Reserve),
            (None, None) => return None,
        };
        self.evict(victim);
        Some(slot)
    }

    fn find_longest_idle(&self, evictable: &ActivityOrder, now: Instant) -> Option<EvictionCandidate> {
        let (_, id) = *evictable.first()?;
        let entry = self.connections.get(&id)?;
        Some(EvictionCandidate {
            id,
            is_past_grace_period: now.duration_since(entry.last_active_at) >= IDLE_GRACE_PERIOD,
        })
    }

    fn evict(&mut self, id: ConnectionId) {
        if let Some(entry) = self.remove_entry(id) {
            entry.eviction_signal.cancel();
            self.metrics.count_evicted_connection();
        }
    }

    fn insert_new_connection(
        &mut self,
        address: IpAddr,
        slot: ConnectionSlot,
        eviction_signal: CancellationToken,
        now: Instant,
    ) -> ConnectionId {
        self.last_activity_number += 1;
        let id = self.last_activity_number;
        self.insert_entry(
            id,
            ConnectionEntry {
                address,
                slot,
                counted_token: None,
                activity_number: id,
                last_active_at: now,
                eviction_signal,
            },
        );
        id
    }

    fn insert_entry(&mut self, id: ConnectionId, entry: ConnectionEntry) {
        match entry.slot {
            ConnectionSlot::Ordinary => {
                self.ordinary_count += 1;
                self.connections_by_address.entry(entry.address).or_default().ordinary_count += 1;
            }
            ConnectionSlot::Reserve => self.reserve_count += 1,
        }
        if let Some(token) = entry.counted_token {
            let token_connections = self.connections_by_token.entry(token).or_default();
            match entry.slot {
                ConnectionSlot::Ordinary => token_connections.ordinary_count += 1,
                ConnectionSlot::Reserve => {
                    token_connections.reserve_count += 1;
                    self.reserve_emit_count += 1;
                }
            }
        }
        self.index_evictable(id, &entry);
        self.connections.insert(id, entry);
    }

    fn remove_entry(&mut self, id: ConnectionId) -> Option<ConnectionEntry> {
        let entry = self.connections.remove(&id)?;
        self.unindex_evictable(id, &entry);
        match entry.slot {
            ConnectionSlot::Ordinary => {
                self.ordinary_count -= 1;
                if let Some(address_connections) = self.connections_by_address.get_mut(&entry.address) {
                    address_connections.ordinary_count -= 1;
                    if address_connections.ordinary_count == 0 {
                        self.connections_by_address.remove(&entry.address);
                    }
                }
            }
            ConnectionSlot::Reserve => self.reserve_count -= 1,
        }
        if let Some(token) = entry.counted_token {
            self.decrement_token_count(token, entry.slot);
        }
        Some(entry)
    }

    fn decrement_token_count(&mut self, token: TokenHash, slot: ConnectionSlot) {
        let Some(token_connections) = self.connections_by_token.get_mut(&token) else { return };
        match slot {
            ConnectionSlot::Ordinary => token_connections.ordinary_count -= 1,
            ConnectionSlot::Reserve => {
                token_connections.reserve_count -= 1;
                self.reserve_emit_count -= 1;
            }
        }
        if token_connections.ordinary_count + token_connections.reserve_count == 0 {
            self.connections_by_token.remove(&token);
        }
    }

    /// Moves a connection to the end of the activity order and decides whether its request is served.
    fn admit_request(
        &mut self,
        limits: &ConnectionLimits,
        id: ConnectionId,
        identity: &Identity,
        purpose: RequestPurpose,
        now: Instant,
    ) -> Option<RequestAdmission> {
        let mut entry = self.remove_entry(id)?;
        self.last_activity_number += 1;
        (entry.activity_number, entry.last_active_at) = (self.last_activity_number, now);
        let admission = match identity {
            Identity::Authenticated(caller) => {
                self.admit_with_token(limits, &mut entry, caller.token_hash(), purpose)
            }
            Identity::Anonymous | Identity::UnknownToken => {
                if identity.is_token_accepted() == Some(false) {
                    entry.counted_token = None;
                }
                match entry.slot {
                    ConnectionSlot::Ordinary => RequestAdmission::Served,
                    ConnectionSlot::Reserve => RequestAdmission::decide_for_reserve_slot(
                        purpose,
                        ConnectionShortage::OrdinaryConnectionsInUse,
                    ),
                }
            }
        };
        self.insert_entry(id, entry);
        Some(admission)
    }

    /// Counts a connection for a token, within the token's shares, and decides whether its request is served. A
    /// connection of the reserve becomes an ordinary one if an ordinary slot can be freed.
    fn admit_with_token(
        &mut self,
        limits: &ConnectionLimits,
        entry: &mut ConnectionEntry,
        token: TokenHash,
        purpose: RequestPurpose,
    ) -> RequestAdmission {
        let token_connections = self.connections_by_token.get(&token).copied().unwrap_or_default();
        let is_within_share = token_connections.ordinary_count < limits.max_per_token;
        entry.counted_token = None;
        if is_within_share
            && (entry.slot == ConnectionSlot::Ordinary || self.try_free_ordinary_slot(limits, entry.address))
        {
            (entry.slot, entry.counted_token) = (ConnectionSlot::Ordinary, Some(token));
            return RequestAdmission::Served;
        }
        if entry.slot == ConnectionSlot::Reserve && purpose == RequestPurpose::Emit {
            if self.reserve_emit_count >= limits.max_reserve_emits
                || token_connections.reserve_count >= limits.max_reserve_emits_per_token
            {
                return RequestAdmission::Refused(ConnectionShortage::TooManyReserveEmits);
            }
            entry.counted_token = Some(token);
        }
        let shortage = if is_within_share {
            ConnectionShortage::OrdinaryConnectionsInUse
        } else {
            ConnectionShortage::TokenShareUsedUp
        };
        RequestAdmission::decide_for_reserve_slot(purpose, shortage)
    }

    /// Frees an ordinary slot for a connection with a valid token, evicting a connection without a valid token if
    /// needed. Returns false if there is neither a free slot nor a connection to evict.
    fn try_free_ordinary_slot(&mut self, limits: &ConnectionLimits, address: IpAddr) -> bool {
        let Some(evictable_connections) = self.select_evictable_connections(limits, address) else {
            return true;
        };
        let Some((_, victim)) = evictable_connections.first().copied() else { return false };
        self.evict(victim);
        true
    }

    /// Adds a connection that is not counted for a token to those that can be evicted.
    fn index_evictable(&mut self, id: ConnectionId, entry: &ConnectionEntry) {
        if entry.counted_token.is_some() {
            return;
        }
        let activity_key = (entry.activity_number, id);
        match entry.slot {
            ConnectionSlot::Ordinary => {
                self.evictable_ordinary.insert(activity_key);
                self.connections_by_address.entry(entry.address).or_default().evictable.insert(activity_key);
            }
            ConnectionSlot::Reserve => {
                self.evictable_in_reserve.insert(activity_key);
            }
        }
    }

    fn unindex_evictable(&mut self, id: ConnectionId, entry: &ConnectionEntry) {
        let activity_key = (entry.activity_number, id);
        match entry.slot {
            ConnectionSlot::Ordinary => {
                self.evictable_ordinary.remove(&activity_key);
                if let Some(address_connections) = self.connections_by_address.get_mut(&entry.address) {
                    address_connections.evictable.remove(&activity_key);
                }
            }
            ConnectionSlot::Reserve => {
                self.evictable_in_reserve.remove(&activity_key);
            }
        }
    }
}

/// The address that identifies a client: for IPv6 the /64 network, since one client can have all addresses of it.
fn client_network(address: IpAddr) -> IpAddr {
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

use super::*;
use crate::limits::testing::test_caller;

const TEST_LIMITS: ServerLimits = ServerLimits {
    anonymous_connections: 4,
    connections_per_address: 4,
    connections_per_client: Some(8),
    reserved_connections: 2,
    streams_per_client: 1,
    response_memory: 1,
    response_memory_per_client: 1,
};

fn new_admission(max_connections: usize, limits: ServerLimits) -> Arc<ConnectionAdmission> {
    ConnectionAdmission::new(max_connections, &limits, Arc::default())
}

fn test_address(number: u32) -> IpAddr {
    std::net::Ipv4Addr::from(number).into()
}

fn admit_connection(
    admission: &Arc<ConnectionAdmission>,
    address_number: u32,
    now: Instant,
) -> AdmittedConnection {
    admission.admit(test_address(address_number), now).unwrap()
}

fn admit_connection_with_token(
    admission: &Arc<ConnectionAdmission>,
    address_number: u32,
    now: Instant,
) -> AdmittedConnection {
    let admitted = admit_connection(admission, address_number, now);
    admit_read_with_token(&admitted, "one", now);
    admitted
}

fn admit_request(
    admitted: &AdmittedConnection,
    identity: &Identity,
    purpose: RequestPurpose,
    now: Instant,
) -> RequestAdmission {
    admitted.connection.admit_request(identity, purpose, now)
}

fn admit_read_with_token(admitted: &AdmittedConnection, token: &str, now: Instant) -> RequestAdmission {
    admit_request(admitted, &Identity::Authenticated(test_caller(token)), RequestPurpose::Other, now)
}

fn admit_emit_with_token(admitted: &AdmittedConnection, token: &str, now: Instant) -> RequestAdmission {
    admit_request(admitted, &Identity::Authenticated(test_caller(token)), RequestPurpose::Emit, now)
}

fn admit_health_check(admitted: &AdmittedConnection, now: Instant) -> RequestAdmission {
    admit_request(admitted, &Identity::Anonymous, RequestPurpose::HealthCheck, now)
}

fn slot_of(admitted: &AdmittedConnection) -> Option<ConnectionSlot> {
    let table = admitted.connection.admission.lock_table();
    table.connections.get(&admitted.connection.id).map(|entry| entry.slot)
}

fn is_evicted(admitted: &AdmittedConnection) -> bool {
    admitted.connection.eviction_signal.is_cancelled()
}

#[test]
fn the_longest_idle_connection_is_evicted_first() {
    let (admission, now) = (new_admission(8, TEST_LIMITS), Instant::now());
    let unauthenticated: Vec<_> = (0..4).map(|number| admit_connection(&admission, number, now)).collect();
    let later = now + IDLE_GRACE_PERIOD;
    // A request makes the first connection the most recently active one.
    admit_health_check(&unauthenticated[0], later);
    let new = admit_connection(&admission, 9, later);
    let evicted: Vec<_> = unauthenticated.iter().map(is_evicted).collect();
    assert_eq!(evicted, [false, true, false, false]);
    assert_eq!(slot_of(&new), Some(ConnectionSlot::Ordinary));
    assert_eq!(
        admit_read_with_token(&unauthenticated[1], "one", later),
        RequestAdmission::Refused(ConnectionShortage::OrdinaryConnectionsInUse)
    );
    assert_eq!(admission.count_open_connections().unauthenticated, 4);
}

#[test]
fn a_connection_within_its_grace_period_is_evicted_last() {
    let (admission, now) = (new_admission(8, TEST_LIMITS), Instant::now());
    let unauthenticated: Vec<_> = (0..4).map(|number| admit_connection(&admission, number, now)).collect();
    let reserve: Vec<_> = (0..2).map(|number| admit_connection(&admission, number, now)).collect();
    assert!(reserve.iter().all(|admitted| slot_of(admitted) == Some(ConnectionSlot::Reserve)));
    assert!(!unauthenticated.iter().chain(&reserve).any(is_evicted));
    let new = admit_connection(&admission, 9, now);
    assert!(is_evicted(&unauthenticated[0]));
    assert_eq!(slot_of(&new), Some(ConnectionSlot::Ordinary));
}

#[test]
fn a_connection_with_a_valid_token_evicts_one_without() {
    let (admission, now) = (
        new_admission(
            8,
            ServerLimits { anonymous_connections: 8, connections_per_address: 8, ..TEST_LIMITS },
        ),
        Instant::now(),
    );
    let unauthenticated: Vec<_> = (0..6).map(|number| admit_connection(&admission, number, now)).collect();
    let new = admit_connection_with_token(&admission, 9, now);
    assert_eq!(slot_of(&new), Some(ConnectionSlot::Ordinary));
    assert_eq!(unauthenticated.iter().filter(|connection| is_evicted(connection)).count(), 1);
    assert!(is_evicted(&unauthenticated[0]));
    assert_eq!(
        admission.count_open_connections(),
        OpenConnectionCounts { authenticated: 1, unauthenticated: 5, in_reserve: 0 }
    );
}

#[test]
fn an_address_at_its_limit_evicts_its_own_connections() {
    let (admission, now) =
        (new_admission(16, ServerLimits { anonymous_connections: 16, ..TEST_LIMITS }), Instant::now());
    let other = admit_connection(&admission, 1, now);
    let own: Vec<_> = (0..4).map(|_| admit_connection(&admission, 2, now)).collect();
    let new = admit_connection(&admission, 2, now + IDLE_GRACE_PERIOD);
    assert!(is_evicted(&own[0]) && !is_evicted(&other));
    assert_eq!(slot_of(&new), Some(ConnectionSlot::Ordinary));
}

#[test]
fn connections_with_a_valid_token_are_not_evicted_and_new_ones_get_the_reserve() {
    let (admission, now) =
        (new_admission(8, ServerLimits { connections_per_address: 8, ..TEST_LIMITS }), Instant::now());
    let authenticated: Vec<_> = (0..6).map(|_| admit_connection_with_token(&admission, 1, now)).collect();
    let reserve: Vec<_> = (0..2).map(|_| admit_connection(&admission, 1, now)).collect();
    assert!(reserve.iter().all(|admitted| slot_of(admitted) == Some(ConnectionSlot::Reserve)));
    let later = admit_connection(&admission, 2, now + IDLE_GRACE_PERIOD);
    assert_eq!(slot_of(&later), Some(ConnectionSlot::Reserve));
    assert!(is_evicted(&reserve[0]) && !is_evicted(&reserve[1]));

    for admitted in [&reserve[1], &later] {
        assert_eq!(
            admit_read_with_token(admitted, "one", now),
            RequestAdmission::Refused(ConnectionShortage::OrdinaryConnectionsInUse)
        );
    }
    assert!(!authenticated.iter().any(is_evicted));
    assert_eq!(
        admission.count_open_connections(),
        OpenConnectionCounts { authenticated: 6, unauthenticated: 0, in_reserve: 2 }
    );
}

#[test]
fn a_token_has_a_share_of_the_connections() {
    let limits = ServerLimits {
        connections_per_address: 4,
        anonymous_connections: 16,
        connections_per_client: None,
        ..TEST_LIMITS
    };
    let (admission, now) = (new_admission(14, limits), Instant::now());
    // From two addresses, so that the share of one address is not used up.
    let authenticated: Vec<_> =
        (0..6).map(|number| admit_connection_with_token(&admission, number % 2, now)).collect();
    let beyond = admit_connection(&admission, 2, now);
    let refused = RequestAdmission::Refused(ConnectionShortage::TokenShareUsedUp);
    assert_eq!(admit_read_with_token(&beyond, "one", now), refused);
    assert_eq!(admit_emit_with_token(&beyond, "one", now), RequestAdmission::ServedThenClosed);
    let others: Vec<_> = (0..6).map(|number| admit_connection(&admission, 10 + number, now)).collect();
    for other in &others {
        assert_eq!(admit_read_with_token(other, "other", now), RequestAdmission::Served);
    }
    assert!(is_evicted(&beyond), "it is evicted like a connection without a valid token");
    assert_eq!(
        admission.count_open_connections(),
        OpenConnectionCounts { authenticated: 12, unauthenticated: 0, in_reserve: 0 }
    );
    drop(authenticated);
    assert_eq!(
        admit_read_with_token(&admit_connection(&admission, 2, now), "one", now),
        RequestAdmission::Served
    );
}

#[test]
fn a_connection_that_changes_its_token_is_counted_for_the_new_one() {
    let limits = ServerLimits { connections_per_client: Some(1), ..TEST_LIMITS };
    let (admission, now) = (new_admission(8, limits), Instant::now());
    let (first, second) = (admit_connection(&admission, 1, now), admit_connection(&admission, 2, now));
    assert_eq!(admit_read_with_token(&first, "one", now), RequestAdmission::Served);
    assert_eq!(admit_read_with_token(&first, "one", now), RequestAdmission::Served);
    assert_eq!(admit_read_with_token(&first, "other", now), RequestAdmission::Served);
    assert_eq!(admit_read_with_token(&second, "one", now), RequestAdmission::Served);
    assert_eq!(
        admit_read_with_token(&second, "other", now),
        RequestAdmission::Refused(ConnectionShortage::TokenShareUsedUp)
    );
}

#[test]
fn emits_leave_a_part_of_the_reserve_to_health_checks() {
    let limits = ServerLimits {
        reserved_connections: 8,
        connections_per_address: 64,
        anonymous_connections: 64,
        ..TEST_LIMITS
    };
    let limits = ServerLimits { connections_per_client: Some(64), ..limits };
    let (admission, now) = (new_admission(32, limits), Instant::now());
    let _authenticated: Vec<_> = (0..24).map(|_| admit_connection_with_token(&admission, 1, now)).collect();
    let emits: Vec<_> = (0..8).map(|_| admit_connection(&admission, 1, now)).collect();
    let refused = RequestAdmission::Refused(ConnectionShortage::TooManyReserveEmits);
    let admissions: Vec<_> = emits
        .iter()
        .enumerate()
        .map(|(number, emit)| admit_emit_with_token(emit, if number < 4 { "one" } else { "other" }, now))
        .collect();
    let served = RequestAdmission::ServedThenClosed;
    assert_eq!(admissions, [served, served, served, refused, served, served, served, refused]);

    for number in 0..100 {
        let check = admit_connection(&admission, number, now + IDLE_GRACE_PERIOD * number);
        assert_eq!(
            admit_health_check(&check, now + IDLE_GRACE_PERIOD * number),
            RequestAdmission::ServedThenClosed
        );
        // It stays open, and so do all others.
        std::mem::forget(check);
    }
    for (emit, admission) in emits.iter().zip(admissions) {
        assert_eq!(is_evicted(emit), admission == refused, "only refused ones are closed for others");
    }
    assert_eq!(admission.count_open_connections().in_reserve, 8);
}

#[test]
fn an_address_at_its_limit_uses_the_reserve_and_other_addresses_are_unaffected() {
    let (admission, now) = (new_admission(16, TEST_LIMITS), Instant::now());
    let _authenticated: Vec<_> = (0..4).map(|_| admit_connection_with_token(&admission, 1, now)).collect();
    assert_eq!(slot_of(&admit_connection(&admission, 1, now)), Some(ConnectionSlot::Reserve));
    assert_eq!(slot_of(&admit_connection(&admission, 2, now)), Some(ConnectionSlot::Ordinary));
}

#[test]
fn a_connection_whose_token_became_invalid_is_evictable_again() {
    let (admission, now) = (new_admission(8, TEST_LIMITS), Instant::now());
    let admitted = admit_connection_with_token(&admission, 1, now);
    admit_health_check(&admitted, now);
    assert_eq!(admission.count_open_connections().authenticated, 1);
    admit_request(&admitted, &Identity::UnknownToken, RequestPurpose::Other, now);
    assert_eq!(admission.count_open_connections().unauthenticated, 1);
}

#[test]
fn closed_connections_leave_no_entries() {
    let (admission, now) = (new_admission(8, TEST_LIMITS), Instant::now());
    let mut open_connections = Vec::new();
    for number in 0..1000 {
        let admitted = admit_connection(&admission, number % 7, now);
        if number % 3 == 0 {
            admit_emit_with_token(&admitted, if number % 2 == 0 { "one" } else { "other" }, now);
        }
        open_connections.push(admitted);
        if open_connections.len() > 5 {
            open_connections.swap_remove(number as usize % 5);
        }
    }
    drop(open_connections);
    let table = admission.lock_table();
    assert_eq!((table.connections.len(), table.ordinary_count, table.reserve_count), (0, 0, 0));
    assert_eq!((table.connections_by_token.len(), table.reserve_emit_count), (0, 0));
    assert!(
        table.evictable_ordinary.is_empty()
            && table.evictable_in_reserve.is_empty()
            && table.connections_by_address.is_empty()
    );
}

#[test]
fn the_reserve_is_at_most_a_quarter_of_all_connections() {
    let limits_for = |max| ConnectionLimits::new(max, &TEST_LIMITS);
    assert_eq!((limits_for(1024).max_ordinary, limits_for(1024).max_reserve), (1022, 2));
    assert_eq!((limits_for(4).max_ordinary, limits_for(4).max_reserve), (3, 1));
    assert_eq!((limits_for(1).max_ordinary, limits_for(1).max_reserve), (1, 0));
    let emits = |max| limits_for(max).max_reserve_emits;
    assert_eq!((emits(1024), emits(4), emits(1)), (1, 0, 0));
}

#[test]
fn ipv6_clients_are_identified_by_their_64_bit_network() {
    let network_of = |text: &str| client_network(text.parse().unwrap()).to_string();
    assert_eq!(network_of("10.0.0.1"), "10.0.0.1");
    assert_eq!(network_of("::ffff:10.0.0.1"), "10.0.0.1");
    assert_eq!(network_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
}

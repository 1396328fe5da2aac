use super::*;

const LIMITS: ServerLimits = ServerLimits {
    anonymous: 4,
    per_address: 4,
    reserve: 2,
    streams_per_client: 1,
    response_memory: 1,
    response_memory_per_client: 1,
};

fn admission(max_connections: usize, limits: ServerLimits) -> Arc<Admission> {
    Admission::new(max_connections, &limits, Arc::default())
}

fn address(number: u32) -> IpAddr {
    std::net::Ipv4Addr::from(number).into()
}

fn admit(admission: &Arc<Admission>, from: u32, now: Instant) -> AdmittedConnection {
    admission.admit(address(from), now).unwrap()
}

fn authenticated(admission: &Arc<Admission>, from: u32, now: Instant) -> AdmittedConnection {
    let admitted = admit(admission, from, now);
    admitted.connection.record_request(Some(true), now);
    admitted
}

fn slot(admitted: &AdmittedConnection) -> Option<Slot> {
    let open = admitted.connection.admission.open();
    open.connections.get(&admitted.connection.id).map(|entry| entry.slot)
}

fn is_closed(admitted: &AdmittedConnection) -> bool {
    admitted.connection.close.is_cancelled()
}

#[test]
fn the_connection_idle_longest_makes_room() {
    let (admission, now) = (admission(8, LIMITS), Instant::now());
    let strangers: Vec<_> = (0..4).map(|number| admit(&admission, number, now)).collect();
    let later = now + GRACE;
    // It is not the oldest any more.
    strangers[0].connection.record_request(None, later);
    let new = admit(&admission, 9, later);
    let closed: Vec<_> = strangers.iter().map(is_closed).collect();
    assert_eq!(closed, [false, true, false, false]);
    assert_eq!(slot(&new), Some(Slot::Ordinary));
    assert_eq!(strangers[1].connection.record_request(Some(true), later), Slot::Reserve);
    assert_eq!(admission.count().unauthenticated, 4);
}

#[test]
fn a_connection_that_has_just_come_makes_room_last() {
    let (admission, now) = (admission(8, LIMITS), Instant::now());
    let strangers: Vec<_> = (0..4).map(|number| admit(&admission, number, now)).collect();
    let reserve: Vec<_> = (0..2).map(|number| admit(&admission, number, now)).collect();
    assert!(reserve.iter().all(|admitted| slot(admitted) == Some(Slot::Reserve)));
    assert!(!strangers.iter().chain(&reserve).any(is_closed));
    let new = admit(&admission, 9, now);
    assert!(is_closed(&strangers[0]));
    assert_eq!(slot(&new), Some(Slot::Ordinary));
}

#[test]
fn a_valid_token_displaces_any_connection_without_one() {
    let (admission, now) =
        (admission(8, ServerLimits { anonymous: 8, per_address: 8, ..LIMITS }), Instant::now());
    let strangers: Vec<_> = (0..6).map(|number| admit(&admission, number, now)).collect();
    let new = authenticated(&admission, 9, now);
    assert_eq!(slot(&new), Some(Slot::Ordinary));
    assert_eq!(strangers.iter().filter(|stranger| is_closed(stranger)).count(), 1);
    assert!(is_closed(&strangers[0]));
    assert_eq!(admission.count(), OpenConnections { authenticated: 1, unauthenticated: 5, reserve: 0 });
}

#[test]
fn an_address_at_its_limit_makes_room_among_its_own() {
    let (admission, now) = (admission(16, ServerLimits { anonymous: 16, ..LIMITS }), Instant::now());
    let other = admit(&admission, 1, now);
    let own: Vec<_> = (0..4).map(|_| admit(&admission, 2, now)).collect();
    let new = admit(&admission, 2, now + GRACE);
    assert!(is_closed(&own[0]) && !is_closed(&other));
    assert_eq!(slot(&new), Some(Slot::Ordinary));
}

#[test]
fn connections_with_a_valid_token_are_never_closed_and_leave_the_reserve() {
    let (admission, now) = (admission(8, ServerLimits { per_address: 8, ..LIMITS }), Instant::now());
    let held: Vec<_> = (0..6).map(|_| authenticated(&admission, 1, now)).collect();
    let reserve: Vec<_> = (0..2).map(|_| admit(&admission, 1, now)).collect();
    assert!(reserve.iter().all(|admitted| slot(admitted) == Some(Slot::Reserve)));
    let later = admit(&admission, 2, now + GRACE);
    assert_eq!(slot(&later), Some(Slot::Reserve));
    assert!(is_closed(&reserve[0]) && !is_closed(&reserve[1]));

    for admitted in [&reserve[1], &later] {
        assert_eq!(admitted.connection.record_request(Some(true), now), Slot::Reserve);
    }
    assert!(admission.admit(address(3), now + GRACE * 2).is_none());
    assert!(!held.iter().any(is_closed));
    assert_eq!(admission.count(), OpenConnections { authenticated: 6, unauthenticated: 0, reserve: 2 });
}

#[test]
fn an_address_full_of_valid_tokens_gets_the_reserve_and_others_do_not_notice() {
    let (admission, now) = (admission(16, LIMITS), Instant::now());
    let _held: Vec<_> = (0..4).map(|_| authenticated(&admission, 1, now)).collect();
    assert_eq!(slot(&admit(&admission, 1, now)), Some(Slot::Reserve));
    assert_eq!(slot(&admit(&admission, 2, now)), Some(Slot::Ordinary));
}

#[test]
fn a_token_that_is_no_longer_valid_protects_nothing() {
    let (admission, now) = (admission(8, LIMITS), Instant::now());
    let admitted = authenticated(&admission, 1, now);
    admitted.connection.record_request(None, now);
    assert_eq!(admission.count().authenticated, 1);
    admitted.connection.record_request(Some(false), now);
    assert_eq!(admission.count().unauthenticated, 1);
}

#[test]
fn nothing_is_left_of_connections_that_have_ended() {
    let (admission, now) = (admission(8, LIMITS), Instant::now());
    let mut held = Vec::new();
    for number in 0..1000 {
        let admitted = admit(&admission, number % 7, now);
        if number % 3 == 0 {
            admitted.connection.record_request(Some(number % 2 == 0), now);
        }
        held.push(admitted);
        if held.len() > 5 {
            held.swap_remove(number as usize % 5);
        }
    }
    drop(held);
    let open = admission.open();
    assert_eq!((open.connections.len(), open.ordinary, open.reserve), (0, 0, 0));
    assert!(open.idle.is_empty() && open.idle_in_reserve.is_empty() && open.addresses.is_empty());
}

#[test]
fn the_reserve_is_a_part_of_all_connections() {
    let shares = |max| Shares::new(max, &LIMITS);
    assert_eq!((shares(1024).ordinary, shares(1024).reserve), (1022, 2));
    assert_eq!((shares(4).ordinary, shares(4).reserve), (3, 1));
    assert_eq!((shares(1).ordinary, shares(1).reserve), (1, 0));
}

#[test]
fn clients_are_known_by_their_network() {
    let of = |text: &str| network(text.parse().unwrap()).to_string();
    assert_eq!(of("10.0.0.1"), "10.0.0.1");
    assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
    assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
}

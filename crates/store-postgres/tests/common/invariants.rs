//! Invariants of a database: the tables must be consistent, whatever happened to the nodes and their connections.

use tokio_postgres::{GenericClient, IsolationLevel, NoTls};

/// Name and query of each invariant; the query returns a description of each row that violates it.
pub(crate) const INVARIANT_QUERIES: [(&str, &str); 16] = [
    (
        "wrong counters of queues",
        "SELECT format('queue %s has the tasks %s and stores the counters %s', q.id, counted, stored)
         FROM pointsman.queue q
         CROSS JOIN LATERAL (SELECT ARRAY[q.ready, q.waiting, q.scheduled, q.running, q.halted, q.missing] AS stored) t
         CROSS JOIN LATERAL (SELECT ARRAY[count(*) FILTER (WHERE phase = 3), count(*) FILTER (WHERE phase < 3),
                                          count(*) FILTER (WHERE phase = 4), count(*) FILTER (WHERE phase = 5),
                                          count(*) FILTER (WHERE phase = 6), count(*) FILTER (WHERE phase = 7)] AS counted
                             FROM pointsman.task WHERE queue = q.id) c
         WHERE counted <> stored",
    ),
    (
        "tasks without a queue",
        "SELECT format('task %s', seq) FROM pointsman.task t
         WHERE NOT EXISTS (SELECT FROM pointsman.queue q WHERE q.id = t.queue)",
    ),
    (
        "numbers beyond the last assigned one",
        "SELECT format('%s: the last assigned number is %s, and %s exists', name, assigned, found)
         FROM pointsman.last_commit s CROSS JOIN LATERAL (VALUES
             ('events', s.last_event, (SELECT max(id) FROM pointsman.journal)),
             ('tasks', s.last_task, (SELECT max(seq) FROM pointsman.task)),
             ('lane positions', s.last_task, (SELECT max(lane_position) FROM pointsman.task)),
             ('ended tasks', s.last_task, (SELECT max(seq) FROM pointsman.history)),
             ('fences', s.last_fence, (SELECT max(fence) FROM pointsman.task)),
             ('objects', s.last_object, (SELECT max(number) FROM pointsman.object)),
             ('orders', s.last_order, (SELECT max(n) FROM pointsman.orders)),
             ('archive numbers', s.last_archive_number, (SELECT max(n) FROM pointsman.history))) v (name, assigned, found)
         WHERE assigned < found",
    ),
    (
        "gaps in the numbers of events",
        "SELECT format('%s are journaled, the last is number %s, and %s exist', s.journaled_events, last, count)
         FROM pointsman.last_commit s,
              (SELECT coalesce(max(number), 0) AS last, count(*) AS count FROM pointsman.journal WHERE number > 0) j
         WHERE last <> s.journaled_events OR (s.expired_event_number = 0 AND count <> last)",
    ),
    (
        "events with descending ids",
        "SELECT format('event %s has number %s, and a smaller id than the event before it', id, number)
         FROM (SELECT id, number, lag(id) OVER (ORDER BY number) AS before FROM pointsman.journal WHERE number > 0) j
         WHERE id <= before",
    ),
    (
        "wrong links to the previous event of an object",
        "SELECT format('event %s of %s has prev %s instead of %s', id, key, prev, before)
         FROM (SELECT id, key, prev, lag(id) OVER (PARTITION BY tenant, key ORDER BY id) AS before
               FROM pointsman.journal WHERE key IS NOT NULL AND type !~ '^[A-Z]') j,
              pointsman.last_commit s
         WHERE prev IS DISTINCT FROM before AND coalesce(prev, before) > s.expired_up_to",
    ),
    (
        "lanes with two tasks that run or can run",
        "SELECT format('lane %s has the claimable or locked tasks %s', lane, string_agg(seq::text, ', ')) FROM pointsman.task
         WHERE lane_position IS NOT NULL AND phase IN (3, 4, 5) GROUP BY lane HAVING count(*) > 1",
    ),
    (
        "lanes whose first task is blocked",
        "SELECT format('task %s is the first of lane %s, and blocked', seq, lane)
         FROM (SELECT DISTINCT ON (lane) lane, seq, phase FROM pointsman.task
               WHERE lane_position IS NOT NULL ORDER BY lane, lane_position) first
         WHERE phase = 0",
    ),
    (
        "tasks that wait for a missing synchronous task",
        "SELECT format('task %s waits for a synchronous task that does not exist', seq) FROM pointsman.task t
         WHERE phase = 1 AND NOT EXISTS (SELECT FROM pointsman.task o
                                         WHERE o.event = t.event AND o.sync AND o.stage < t.stage)",
    ),
    (
        "tasks without their event",
        "SELECT format('task %s of event %s', seq, event) FROM pointsman.task t
         WHERE event IS NOT NULL AND NOT EXISTS (SELECT FROM pointsman.journal j WHERE j.id = t.event)",
    ),
    (
        "events with missing tasks",
        "SELECT format('event %s has %s tasks from %s on, and %s exist', id, expected, first_task, count)
         FROM (SELECT j.id, j.tasks AS expected, j.first_task, count(o.seq) AS count FROM pointsman.journal j
               LEFT JOIN (SELECT event, seq FROM pointsman.task UNION ALL SELECT event, seq FROM pointsman.history) o
                      ON o.event = j.id AND o.seq BETWEEN j.first_task AND j.first_task + j.tasks - 1
               GROUP BY j.id, j.tasks, j.first_task) counted, pointsman.last_commit s
         WHERE count <> expected AND s.expired_archive_number = 0",
    ),
    (
        "tasks and orders that do not refer to each other",
        "SELECT format('order %s has task %s, and task %s has order %s', o.n, o.task, t.seq, t.order_number)
         FROM pointsman.orders o FULL JOIN (SELECT seq, order_number FROM pointsman.task
                                            WHERE order_number IS NOT NULL) t ON t.seq = o.task
         WHERE (o.task IS NOT NULL OR t.seq IS NOT NULL) AND t.order_number IS DISTINCT FROM o.n",
    ),
    (
        "locks without a fence or an owner",
        "SELECT format('task %s', seq) FROM pointsman.task
         WHERE (phase = 5) <> (fence IS NOT NULL) OR (phase = 5 AND coalesce(node, 0) = 0 AND leased_until IS NULL)",
    ),
    (
        "locks of nodes that have left",
        "SELECT format('task %s of node %s', seq, node) FROM pointsman.task t
         WHERE phase = 5 AND node <> 0
           AND NOT EXISTS (SELECT FROM pointsman.node n WHERE n.id = t.node AND NOT n.gone)",
    ),
    (
        "fences of two tasks",
        "SELECT format('fence %s', fence) FROM pointsman.task
         WHERE fence IS NOT NULL GROUP BY fence HAVING count(*) > 1",
    ),
    (
        "tasks that are both active and archived",
        "SELECT format('task %s', seq)
         FROM (SELECT seq FROM pointsman.task
               UNION ALL SELECT h.seq FROM pointsman.history h, pointsman.last_commit s
               WHERE h.n > s.expired_archive_number) t
         GROUP BY seq HAVING count(*) > 1",
    ),
];

/// Lists the violations of all invariants.
pub(crate) async fn find_violations(client: &impl GenericClient) -> Vec<String> {
    let mut violations = Vec::new();
    for (name, check) in INVARIANT_QUERIES {
        let found = client.query(check, &[]).await;
        let found = found.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        violations.extend(found.iter().map(|row| format!("{name}: {}", row.get::<_, String>(0))));
    }
    violations
}

/// Panics if an invariant is violated. All queries see one snapshot, so that nodes may continue to write.
pub(crate) async fn assert_invariants(url: &str) {
    let (mut client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let snapshot = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let violations = find_violations(&snapshot.start().await.unwrap()).await;
    let listed = violations.iter().take(20).fold(String::new(), |list, violation| list + "\n  " + violation);
    assert!(violations.is_empty(), "{} invariants of the database are violated:{listed}", violations.len());
}

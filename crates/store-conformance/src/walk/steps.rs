//! What a walk does at random: one function a step, each with what it means for the model.

use std::collections::BTreeSet;

use pointsman_core::journal::Retention;
use pointsman_core::store::{
    Claim, Claims, Ended, Ending, Finished, Receipt, Refused, Sequenced, TaskFilter,
};
use pointsman_core::task::{Command, Rejected, State, TaskSeq};
use pointsman_core::{HandlerName, NewEvent, Rule, Status};

use super::{HANDLERS, Walk, plan, rule_kinds};
use crate::world::*;

const TENANTS: [&str; 2] = ["default", "shop"];

impl<'h> Walk<'h> {
    /// One step, chosen at random.
    pub(super) async fn step(mut self) -> Self {
        let chance = self.rng.below(1000);
        match chance {
            0..230 => self.emit().await,
            230..250 => self.repeat().await,
            250..480 => self.claim().await,
            480..740 => self.finish().await,
            740..830 => self.pass_time(),
            830..870 => self.schedule().await,
            870..900 => self.hold().await,
            900..925 => self.lift().await,
            925..950 => self.retry().await,
            950..965 => self.cancel().await,
            965..973 => self.adopt_some().await,
            973..981 => self.lose_or_restore().await,
            981..989 => self.crash().await,
            989..993 => self.forget().await,
            _ => self = self.restart().await,
        }
        self
    }

    fn random_event(&mut self) -> NewEvent {
        let kind = *self
            .rng
            .pick(&["record", "record.published", "record.published", "note", "silence"])
            .expect("some");
        let mut new = event(kind).value(&self.rng.below(1000).to_string());
        new = new.tenant(TENANTS[usize::from(self.rng.percent(25))]);
        if self.rng.percent(85) {
            new = new.key(&format!("k{}", self.rng.below(4)));
        }
        if self.rng.percent(20) {
            new = new.priority(self.rng.upto(9000) as i64);
        }
        if self.rng.percent(10) {
            new = new.due(self.world.later(self.rng.below(60) as u64));
        }
        new
    }

    fn random_claim(&mut self) -> Claim {
        let names = HANDLERS.iter().filter(|name| !self.lost.contains(*name));
        let mut handlers: BTreeSet<HandlerName> = names.map(|name| handler(name)).collect();
        if self.rng.percent(30) {
            handlers.remove(&handler(HANDLERS[self.rng.below(4)]));
        }
        self.world.node = self.nodes[self.rng.below(2)];
        let max = self.rng.upto(8);
        self.world.asking_for(handlers, max)
    }

    async fn emit(&mut self) {
        let mut emissions = Vec::new();
        for _ in 0..self.rng.upto(2) {
            let events: Vec<_> = (0..self.rng.upto(2)).map(|_| self.random_event()).collect();
            emissions.push(match self.rng.percent(10) {
                true => keyed("default", &format!("once-{}", self.receipts.len()), 1, events),
                false => emission(events),
            });
            if emissions
                .last()
                .is_some_and(|last: &pointsman_core::store::Emission| last.idempotency.is_some())
            {
                break;
            }
        }
        let claim = self.rng.percent(30).then(|| self.random_claim());
        self.trail.add(format!("emit {} with claim {claim:?}", emissions.len()));
        let asked = self.world.store.append(emissions.clone(), claim.clone(), self.world.now).await;
        let (answers, claims) = must(asked);
        for (emission, answer) in emissions.into_iter().zip(answers) {
            let receipt = answer.expect("a new key, or none");
            assert!(!receipt.repeated);
            self.journal(&emission.events, &receipt.events).await;
            if emission.idempotency.is_some() {
                self.receipts.push((emission, receipt));
            }
        }
        self.claimed_with(claim, claims).await;
    }

    /// Tells the model of events that were journaled.
    async fn journal(&mut self, new: &[NewEvent], got: &[Sequenced]) {
        assert_eq!(new.len(), got.len());
        for (new, got) in new.iter().zip(got) {
            let mut seqs = Vec::new();
            for id in &got.tasks {
                seqs.push(self.world.task(id).await.seq);
            }
            self.model.journal(&self.world.plan, new, got, &seqs, self.world.now);
        }
    }

    async fn claimed_with(&mut self, claim: Option<Claim>, claims: Claims) {
        match claim {
            None => {
                assert!(claims.tasks.is_empty());
                self.check_counters(&BTreeSet::new()).await;
            }
            Some(claim) => {
                self.check_claims(&claim, &claims);
                self.check_counters(&claim.handlers).await;
            }
        }
    }

    /// An emission again under its key, now and then with other content.
    async fn repeat(&mut self) {
        let Some((mut emission, receipt)) = self.rng.pick(&self.receipts).cloned() else { return };
        let other = self.rng.percent(30);
        let Some(idempotency) = emission.idempotency.as_mut() else { return };
        idempotency.digest[0] ^= u8::from(other) << 7;
        self.trail.add(format!("repeat {} with other content: {other}", idempotency.key));
        let want = match other {
            true => Err(Refused::IdempotencyConflict(idempotency.key.clone())),
            false => Ok(Receipt { repeated: true, ..receipt }),
        };
        assert_eq!(self.world.append(vec![emission]).await, [want]);
    }

    async fn claim(&mut self) {
        let claim = self.random_claim();
        self.trail.add(format!("claim {claim:?}"));
        let claims = must(self.world.store.claim(claim.clone(), self.world.now).await);
        self.claimed_with(Some(claim), claims).await;
    }

    async fn finish(&mut self) {
        let mut endings = Vec::new();
        for _ in 0..self.rng.upto(5) {
            if let Some(ending) = self.random_ending() {
                endings.push(ending);
            }
        }
        let claim = self.rng.percent(30).then(|| self.random_claim());
        self.trail.add(format!("finish {endings:?} with claim {claim:?}"));
        let (answers, claims) =
            must(self.world.store.finish(endings.clone(), claim.clone(), self.world.now).await);
        assert_eq!(answers.len(), endings.len());
        for (ending, answer) in endings.into_iter().zip(answers) {
            self.ended(ending, answer).await;
        }
        self.claimed_with(claim, claims).await;
    }

    /// Mostly of a task that runs, sometimes of one that ran once, sometimes with a fence that never was.
    fn random_ending(&mut self) -> Option<Ending> {
        let zombie = self.rng.percent(10);
        let running = |seq: TaskSeq| self.model.tasks[&seq].life.state.status() == Status::Locked;
        let of: Vec<_> = self.claimed.iter().filter(|task| zombie || running(task.seq)).cloned().collect();
        let task = self.rng.pick(&of)?.clone();
        let ended = match self.rng.below(100) {
            0..60 => succeeded(),
            60..78 => failed(),
            78..84 => failed_for_good(),
            84..94 => Ended::Snoozed { until: self.world.later(self.rng.below(30) as u64) },
            _ => Ended::Released,
        };
        let emits = match ended {
            Ended::Succeeded { .. } if task.event.depth() < 3 && self.rng.percent(15) => {
                vec![self.random_event().caused_by(&task)]
            }
            _ => vec![],
        };
        let fence = task.fence - i64::from(self.rng.percent(4)) * 1_000_000;
        Some(Ending { fence, emits, ..ending(&task, ended) })
    }

    async fn ended(&mut self, ending: Ending, answer: Result<Finished, Rejected>) {
        let fence = ending.fence;
        let command = match ending.ended {
            Ended::Succeeded { .. } => Command::Succeed { fence },
            Ended::Failed { after, last, .. } => Command::Fail { fence, after, last },
            Ended::Snoozed { until } => Command::Snooze { fence, until },
            Ended::Released => Command::Release { fence },
        };
        let verdict = self.model.apply(ending.task, command, self.world.now);
        let finished = match (verdict, answer) {
            (Ok(()), Ok(finished)) => finished,
            (verdict, answer) => {
                assert_eq!(answer.map(|_| ()), verdict, "{}: {command:?}", ending.task);
                return;
            }
        };
        let state = self.model.tasks[&ending.task].life.state;
        let due = if let State::New { due } = state { Some(due) } else { None };
        assert_eq!((finished.status, finished.due), (state.status(), due), "{}: {command:?}", ending.task);
        self.journal(&ending.emits, &finished.emitted).await;
    }

    fn pass_time(&mut self) {
        let seconds = self.rng.upto(15) as u64;
        self.trail.add(format!("{seconds} s pass"));
        self.world.tick(seconds);
    }

    async fn schedule(&mut self) {
        let ahead = self.rng.upto(8);
        self.trail.add(format!("schedule {ahead}"));
        let free = |seq: &TaskSeq| !self.model.is_held(&self.model.tasks[seq]);
        let ready: BTreeSet<_> = self.model.ready(self.world.now).into_iter().filter(free).collect();
        let before = self.model.live_in(Status::Scheduled);
        let want = before.len() + ready.len().min(ahead.saturating_sub(before.len()));
        assert_eq!(self.world.schedule(ahead).await, want);
        let filter = TaskFilter { statuses: vec![Status::Scheduled], ..TaskFilter::default() };
        let found: BTreeSet<_> = self.world.tasks(&filter).await.iter().map(|task| task.seq).collect();
        assert_eq!(found.len(), want);
        assert!(before.iter().all(|seq| found.contains(seq)), "nothing is taken back");
        for seq in found.iter().filter(|seq| !before.contains(seq)) {
            assert!(ready.contains(seq), "{seq} could not run");
            self.model.apply(*seq, Command::Schedule, self.world.now).expect("it was new");
        }
        self.check_counters(&BTreeSet::new()).await;
    }

    async fn hold(&mut self) {
        let kind = rule_kinds(&mut self.rng);
        let name = HANDLERS[self.rng.below(4)];
        let of = self.rng.percent(50).then(|| TENANTS[self.rng.below(2)]);
        let rule: Rule = self.world.rule(kind, name, of);
        self.trail.add(format!("hold {rule:?}"));
        must(self.world.store.hold(rule.clone()).await);
        self.model.rules.insert((kind, rule.handler, rule.tenant));
        for seq in self.model.live_in(Status::Scheduled) {
            if self.model.is_held(&self.model.tasks[&seq]) {
                self.model.apply(seq, Command::Unschedule, self.world.now).expect("it was scheduled");
                // A rule is set without telling the time: when the task falls due then is the store's choice.
                let stored = self.world.task(&self.model.tasks[&seq].id).await.life;
                assert!(matches!(stored.state, State::New { due } if due <= self.world.now), "{stored:?}");
                self.model.life_mut(seq).state = stored.state;
            }
        }
        self.check_counters(&BTreeSet::new()).await;
    }

    async fn lift(&mut self) {
        let standing: Vec<_> = self.model.rules.iter().cloned().collect();
        let Some(rule) = self.rng.pick(&standing) else { return };
        self.trail.add(format!("lift {rule:?}"));
        assert!(must(self.world.store.release(rule.0, &rule.1, rule.2.as_ref()).await));
        self.model.rules.remove(rule);
        self.check_counters(&BTreeSet::new()).await;
    }

    /// Any task at all, unless it would wait for a handler that is not there.
    fn random_task(&mut self) -> Option<TaskSeq> {
        let seqs: Vec<_> = match self.rng.percent(50) {
            true => self.model.live.iter().copied().collect(),
            false => self.model.tasks.keys().copied().collect(),
        };
        let seq = *self.rng.pick(&seqs)?;
        let handler = &self.model.tasks[&seq].handler;
        (!self.lost.contains(handler.as_str())).then_some(seq)
    }

    async fn retry(&mut self) {
        let halted = self.model.live_in(Status::Error);
        let Some(seq) = self.random_task() else { return };
        let seq = self.rng.pick(&halted).copied().filter(|_| self.lost.is_empty()).unwrap_or(seq);
        let id = self.model.tasks[&seq].id.clone();
        self.trail.add(format!("retry {id}"));
        let answer = self.world.retry(&id).await;
        if answer == Err(Rejected::Forgotten) {
            let task = &self.model.tasks[&seq];
            assert!(!self.model.live.contains(&seq), "an unfinished task keeps its event");
            assert!(task.event <= self.world.extent().await.forgotten, "{id}");
            return;
        }
        assert_eq!(answer, self.model.apply(seq, Command::Retry, self.world.now), "{id}");
        self.check_counters(&BTreeSet::new()).await;
    }

    async fn cancel(&mut self) {
        let Some(seq) = self.random_task() else { return };
        let id = self.model.tasks[&seq].id.clone();
        self.trail.add(format!("cancel {id}"));
        let answer = self.world.cancel(&id).await;
        assert_eq!(answer, self.model.apply(seq, Command::Cancel, self.world.now), "{id}");
        self.check_counters(&BTreeSet::new()).await;
    }

    async fn adopt_some(&mut self) {
        let name = HANDLERS[self.rng.below(4)];
        if !self.lost.contains(name) {
            self.adopt(name).await;
        }
    }

    pub(super) async fn adopt(&mut self, name: &str) {
        self.trail.add(format!("adopt {name}"));
        let mut missing = self.model.live_in(Status::Missing);
        missing.retain(|seq| self.model.tasks[seq].handler.as_str() == name);
        assert_eq!(self.world.adopt(name).await, missing.len() as u64);
        for seq in missing {
            self.model.apply(seq, Command::Adopt, self.world.now).expect("it was missing");
        }
        self.check_counters(&BTreeSet::new()).await;
    }

    /// A handler goes, with none of its tasks running; or all that have gone come back.
    async fn lose_or_restore(&mut self) {
        if !self.lost.is_empty() {
            self.trail.add(format!("restore {:?}", self.lost));
            self.lost.clear();
            self.world.register(plan()).await;
            return;
        }
        let name = HANDLERS[self.rng.below(4)];
        let of_it = |seq: &TaskSeq| self.model.tasks[seq].handler.as_str() == name;
        if self.model.live_in(Status::Locked).iter().any(of_it) {
            return;
        }
        self.trail.add(format!("lose {name}"));
        self.lost.insert(name);
        self.heartbeats().await;
        self.world.register(plan().without(name)).await;
        let rescued = self.world.rescue().await;
        let mut gone = [self.model.live_in(Status::New), self.model.live_in(Status::Scheduled)].concat();
        gone.retain(|seq| self.model.tasks[seq].handler.as_str() == name);
        assert_eq!((rescued.tasks, rescued.missing), (vec![], gone.len() as u64));
        for seq in gone {
            self.model.apply(seq, Command::Lose, self.world.now).expect("it waited");
        }
        self.check_counters(&BTreeSet::new()).await;
    }

    async fn heartbeats(&self) {
        for node in self.nodes {
            assert!(must(self.world.store.heartbeat(node, self.world.now).await), "{node} lives");
        }
    }

    /// One of the nodes falls silent for longer than its lease; the other one sweeps.
    async fn crash(&mut self) {
        self.heartbeats().await;
        let (dead, alive) = if self.rng.percent(50) { (0, 1) } else { (1, 0) };
        self.trail.add(format!("node {} dies", self.nodes[dead]));
        self.world.tick(LEASE + 1);
        assert!(must(self.world.store.heartbeat(self.nodes[alive], self.world.now).await));
        let rescued = self.world.rescue().await;
        let mut want = Vec::new();
        for seq in self.model.live_in(Status::Locked) {
            if let State::Locked(lease) = self.model.tasks[&seq].life.state
                && lease.node == self.nodes[dead]
            {
                self.model
                    .apply(seq, Command::Expire { fence: lease.fence }, self.world.now)
                    .expect("it ran");
                let task = &self.model.tasks[&seq];
                want.push((task.id.clone(), task.life.state.status()));
            }
        }
        let mut got = rescued.tasks;
        got.sort();
        want.sort();
        assert_eq!((got, rescued.missing), (want, 0));
        self.nodes[dead] = must(self.world.store.join("replacement", self.world.now).await);
        self.check_counters(&BTreeSet::new()).await;
    }

    /// The journal forgets what is older than two minutes; no task and no young event goes with it.
    async fn forget(&mut self) {
        self.trail.add("forget".into());
        self.world.prune(Retention { age: secs(120), ..EVERYTHING }, EVERYTHING).await;
        let extent = self.world.extent().await;
        let young = self.oldest_younger_than(120);
        assert!(young.is_none_or(|young| extent.forgotten < young), "young events stay");
        self.check_journal().await;
    }

    async fn restart(mut self) -> Self {
        self.trail.add("restart".into());
        let Self { world, .. } = self;
        let world = world.reopen().await;
        self = Self { world, ..self };
        self.check_tasks().await;
        self.check_journal().await;
        self.check_counters(&BTreeSet::new()).await;
        self
    }
}
